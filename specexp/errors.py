"""The one exception that is a person's to mend: shown as one line, never as a traceback."""


class UserError(ValueError):
    """Bad input. The message is one line that names the key, the value and what would be right."""


class SenselessPair(UserError):
    """Members that are right by themselves but make no sense together; a sweep skips such a cell."""
