"""What goes wrong in a catalog or its store, by what the caller does next."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pyiceberg.exceptions import (
    AuthorizationExpiredError,
    CommitFailedException,
    CommitStateUnknownException,
    ForbiddenError,
    NotInstalledError,
    OAuthError,
    RESTError,
    SignError,
    TableAlreadyExistsError,
    UnauthorizedError,
    ValidationException,
)

from tidemark.errors import (
    CommitUnknown,
    Contention,
    InvalidUsage,
    MissingExtra,
    TidemarkError,
    Unavailable,
    plain_line,
)

_NOT_ALLOWED = (UnauthorizedError, ForbiddenError, AuthorizationExpiredError, OAuthError, SignError, PermissionError)
_AGAIN = "run the step again"


@contextmanager
def translated(where: str, *, committing: bool = False) -> Iterator[None]:
    """Errors of pyiceberg and of what it is built upon, as ours, each in one line that names the table."""
    try:
        yield
    except TidemarkError:
        raise
    except (CommitFailedException, ValidationException, TableAlreadyExistsError) as error:
        raise Contention(f"table {where} was changed by another commit meanwhile ({_said(error)}); {_AGAIN}") from error
    except CommitStateUnknownException as error:
        raise CommitUnknown(f"the catalog did not say whether table {where} was changed; {_AGAIN}") from error
    except _NOT_ALLOWED as error:
        raise _not_allowed(where, error) from error
    except (NotInstalledError, ImportError) as error:
        raise MissingExtra(
            f"the catalog of table {where} needs a package that is not installed: {_said(error)}"
        ) from error
    except (RESTError, OSError) as error:
        if any(word in str(error).lower() for word in ("access_denied", "access denied", "credential")):
            raise _not_allowed(where, error) from error
        raise Unavailable(
            f"the catalog or the store of table {where} did not answer ({_said(error)}); {_AGAIN}"
        ) from error
    except Exception as error:
        if _is_of_a_database(error):
            raise Unavailable(f"the catalog of table {where} did not answer ({_said(error)}); {_AGAIN}") from error
        if isinstance(error, ValueError | KeyError | TypeError) and not committing:
            raise InvalidUsage(f"the catalog of table {where} cannot be opened: {_said(error)}") from error
        raise


def _not_allowed(where: str, error: Exception) -> InvalidUsage:
    return InvalidUsage(
        f"the catalog or the store of table {where} refused the credentials, or has none ({_said(error)}); set them "
        "where pyiceberg looks: PYICEBERG_CATALOG__NAME__..., .pyiceberg.yaml, or AWS_ACCESS_KEY_ID"
    )


def _is_of_a_database(error: Exception) -> bool:
    return any(of.__module__.startswith(("sqlalchemy", "sqlite3", "requests")) for of in type(error).__mro__)


def _said(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return plain_line(lines[0] if lines else type(error).__name__, 300)
