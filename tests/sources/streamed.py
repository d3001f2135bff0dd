"""A stream of files, delivered step by step."""

from tests.support.lake import Row
from tests.support.landed import RUN, Landed, write

from sluice.engine import BatchReport
from sluice.operate.run import deliver


def declared(
    extra: str = "", format_: str = "json", schema: str = "id INT, v INT", path: str = "in"
) -> str:
    return (
        f"sources:\n  events: {{delivery: stream, path: landing/{path}, format: {format_}, "
        f"schema: '{schema}'{', ' + extra if extra else ''}}}\n"
    )


class Streamed(Landed):
    def arrive(self, **files: object) -> None:
        """Further files beside those that are there."""
        for name, content in files.items():
            write(self.landing / "in" / name.replace("_", "."), content)  # type: ignore[arg-type]

    def take(self) -> list[BatchReport]:
        return list(deliver(self.spark, self.project, self.table("events"), RUN, ()))

    def values(self) -> list[Row]:
        return sorted(self.rows("events"), key=repr)
