"""How findings are written out; every format is a pure function of the outcome of a run."""
