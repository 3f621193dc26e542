"""The disk as a hostile repository may have laid it out: reading that is bounded, writing that is whole."""
