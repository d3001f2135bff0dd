"""Python objects that users name in a declaration: `module:name`, shipped with their module.

They are shipped by value, so Spark's workers need not have the module. Loading the configuration
checks which modules may be named.
"""

from importlib import import_module
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
    return found
