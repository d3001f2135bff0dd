"""Python objects that users name in a declaration: `module:name`, shipped with their package.

They are shipped by value, with the used parts of their package, so Spark's workers don't need it.
If that contains something that can't be pickled, such as a lock, only their own module is sent, and
workers must have the rest. Loading the configuration checks which modules may be named.
"""

from importlib import import_module
from types import ModuleType
from typing import Any

from pyspark import cloudpickle

from sluice.errors import ConfigError


def imported(reference: str, where: str) -> Any:
    """Return the object of `module:name`; ConfigError, beginning with `where`, if there is none."""
    module_name, _, name = reference.partition(":")
    try:
        module = import_module(module_name)
        found = getattr(module, name)
    except (ImportError, AttributeError) as error:
        raise ConfigError(
            [f"{where}: {error}"],
            hint="the module must be importable where Sluice runs: install it, or name its "
            "folder in PYTHONPATH",
        ) from error
    cloudpickle.register_pickle_by_value(module)  # type: ignore[no-untyped-call]
    package = import_module(module_name.partition(".")[0])
    if package is not module:
        _ship(package, found)
    return found


def _ship(package: ModuleType, found: Any) -> None:
    cloudpickle.register_pickle_by_value(package)  # type: ignore[no-untyped-call]
    try:
        cloudpickle.dumps(found)  # type: ignore[no-untyped-call]
    except Exception:  # noqa: BLE001 - whatever it is, workers may have it
        cloudpickle.unregister_pickle_by_value(package)  # type: ignore[no-untyped-call]
