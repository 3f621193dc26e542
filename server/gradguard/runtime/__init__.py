"""The runtime monitor: watches real torch while a program runs and reports what went wrong, with lines.

The only part of the package that imports torch besides the table's generators.
"""
