"""Commands and jobs: parse, call, print, exit code."""
