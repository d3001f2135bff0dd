"""What would run code that nobody wrote for Sluice: refused where a configuration asks for it.

Who edits YAML names tables, columns and settings. Code comes from those who install Python modules
and set up Spark; a configuration can only pick among what they made for it.
"""

import re
import sys

_LOADS = (
    r"(?!spark\.).*",  # the JVM's own, as spark-submit takes them
    r"spark\.(jars|files|archives|plugins|serializer|extraListeners|submit|metrics)\b.*",
    r"spark\.(pyspark|python|r|executorEnv|yarn\.appMasterEnv|kubernetes\.driverEnv)\..*",
    r"spark\.(driver|executor|yarn\.am)\.(extra|default|userClassPath).*",
    r"spark\.kubernetes\..*podTemplate.*",
    r"spark\.sql\.(extensions|catalog|hive|queryExecutionListeners|cache\.serializer)\b.*",
    r"spark\..*([iI]mpl|[cC]lass(es)?|[pP]rovider|[fF]actory|[lL]isteners|[sS]cript|[cC]odecs)",
)
_LOADING = re.compile("|".join(_LOADS))


def check_setting(name: str) -> None:
    """ValueError for a setting of Spark that names code to be loaded or a program to be run."""
    if _LOADING.fullmatch(name):
        raise ValueError(
            f"{name} may load code, so it can't be set in YAML; set it where Spark is set up: in "
            "spark-defaults.conf of SPARK_CONF_DIR"
        )


def check_module(name: str) -> None:
    """ValueError for a module that is not a user's own."""
    if not all(part.isidentifier() for part in name.split(".")):
        raise ValueError(f"{name!r} is not the name of a module; write e.g. shop.aggregates")
    if name.partition(".")[0] in {*sys.stdlib_module_names, "sluice"}:
        raise ValueError(f"{name} was not made for Sluice: write a module of your own")
