"""The one exception for a request that cannot be carried out."""


class Refused(Exception):
    """The request cannot be carried out; the message says why, a line for each reason."""
