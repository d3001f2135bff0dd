"""Java for tests: what runs for minutes, and always something else, is not worth optimising.

Nor are classes of Spark worth checking at each start, which is a fifth of what its workers compute.
"""

UNCHECKED = "-XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote"
BRIEF = f"-XX:TieredStopAtLevel=1 -XX:+UseSerialGC {UNCHECKED}"
LEAN = {"JDK_JAVA_OPTIONS": BRIEF}
