"""A row of the table and a call, made into what the machine does."""
