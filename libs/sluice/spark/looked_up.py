"""Java's classes and static methods that expressions need, asked for once.

PySpark asks Java for a class at each function of an expression. py4j then searches every jar under
every package that Spark imports. A batch makes thousands of such expressions.
"""

from typing import Any

CLASSES = (
    "functions",
    "PythonSQLUtils",
    "PythonUtils",
    "org.apache.spark.sql.functions",
)


class _Kept:
    """A Java class whose static methods are looked up once."""

    def __init__(self, java_class: Any):
        self._java_class = java_class

    def __getattr__(self, name: str) -> Any:
        member = getattr(self._java_class, name)
        setattr(self, name, member)
        return member


def keep_classes(jvm: Any) -> None:
    """Make the view `jvm` keep these classes; py4j asks Java for missing names."""
    for name in CLASSES:
        setattr(jvm, name, _Kept(getattr(jvm, name)))
