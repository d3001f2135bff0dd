"""`make up`: Airflow with its UI, left running; `make down` stops it."""

import argparse
import sys

from sluice.errors import SluiceError
from stack import HOME, Ports, Stack


def main() -> int:
    """Start the services that don't run, and print their addresses."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--engine", choices=("connect", "submit"), default="connect")
    engine = parser.parse_args().engine
    try:
        stack = Stack.found() or Stack(HOME, engine, Ports.usual())
        if stack.is_whole:
            print("Airflow runs already")
        else:
            print("starting Airflow ...", flush=True)
            _start(stack)
    except SluiceError as error:
        print(f"error: {error}", file=sys.stderr)
        return int(error.exit_code)
    print(WHERE.format(url=stack.airflow.url, password=stack.airflow.password, home=stack.home))
    return 0


def _start(stack: Stack) -> None:
    try:
        stack.start()
    except BaseException:
        stack.stop()
        raise


WHERE = """
  UI        {url}
  login     admin / {password}
  logs      {home}/run/*.log
  stop      make down

Switch a pipeline's DAG on, then run it for days of your choice: Trigger, Backfill. To run days that
ran already, as after a correction, choose All Runs there."""

if __name__ == "__main__":
    sys.exit(main())
