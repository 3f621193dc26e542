"""The language server inside a web page or an editor that runs in a browser."""
