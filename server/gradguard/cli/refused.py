"""The one exception for a request that cannot be carried out."""


class Refused(Exception):
    """The request cannot be carried out; each argument says one reason why, in one line."""

    @property
    def reasons(self) -> tuple[str, ...]:
        """One or more."""
        return tuple(map(str, self.args))
