"""Spark's session of a process, started only when a batch has something to do.

The same jobs run in their own Spark (local, standalone, YARN, Kubernetes by `master`) and through
Spark Connect. The settings that they need of either are here.

On S3, Spark reads and commits by Hadoop's S3A. A commit must fail if its version is there. The log
store asks S3A to create a version's file by a `PUT` with `If-None-Match: *`, as delta-rs does. So
both may meet on one table, in any processes. Delta's own log store for S3 has a lock of one JVM in
its place. Credentials are in no setting: the JVM takes them from its environment, a profile or a
role, and sends them to its workers.

PySpark asks Java for a class at each function of an expression, and py4j then searches every jar
under every package that Spark imports. A batch makes thousands of such expressions, so classes and
static methods are asked for once.

A long computation logs its progress every half minute, for readers of a task's log. A Spark Connect
server reports to its clients; a Spark of one's own is asked. Commands draw their own progress and
ignore these lines. If Spark shows pages of its own, the log gives their address.
"""

import gc
import logging
import os
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from threading import Event, Lock, Thread
from typing import TYPE_CHECKING, Any

from sluice import extras
from sluice.declare.project import SparkSettings
from sluice.declare.stores import S3
from sluice.delta.places.delta_rs import endpoint_of, region
from sluice.errors import MissingDependency
from sluice.extras import require
from sluice.limits import Limits
from sluice.meter import METER, Clock
from sluice.spark.engine import PROCESS, SPARK, T, by_spark, left_to_spark
from sluice.spark.jars import classpath
from sluice.spark.java import Archive, environment, java_home
from sluice.spark.starting import check_age, check_server, hush, lasting, start_or_explain
from sluice.terminal import COLLECTED_AT

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    from sluice.interpreter.local_session import Session

_PROVIDERS = (
    "org.apache.hadoop.fs.s3a.TemporaryAWSCredentialsProvider",
    "org.apache.hadoop.fs.s3a.SimpleAWSCredentialsProvider",
    "software.amazon.awssdk.auth.credentials.DefaultCredentialsProvider",
)

CLASSES = ("functions", "PythonSQLUtils", "PythonUtils", "org.apache.spark.sql.functions")

EVERY = 30.0
UI_PORT = "4040"
log = logging.getLogger(__name__)

LOGGING = Path(__file__).with_name("log4j2.properties")
RUNTIME_CONF: Mapping[str, str] = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.ansi.enabled": "true",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.sources.partitionOverwriteMode": "static",  # a replaced table is replaced whole
    "spark.databricks.delta.snapshotPartitions": "2",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.execution.arrow.localRelationThreshold": "8MB",  # more would fill its heap
    "spark.sql.optimizer.windowGroupLimitThreshold": "1000000",  # limits ranks before a shuffle
    "spark.sql.inMemoryColumnarStorage.compressed": "false",  # kept rows are read once or twice
}
STATIC_CONF: Mapping[str, str] = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.sql.catalogImplementation": "in-memory",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.ui.retainedJobs": "50",
    "spark.ui.retainedStages": "50",
    "spark.ui.retainedTasks": "500",
    "spark.sql.ui.retainedExecutions": "20",
    "spark.sql.codegen.cache.maxEntries": "1000",  # a batch needs fifty
    "spark.databricks.delta.delta.log.cacheSize": "50",  # tables; each takes 3 MB for an hour
    "spark.driver.memory": "2g",
    "spark.python.sql.dataFrameDebugging.enabled": "false",
}
CODE_CACHE = "-XX:ReservedCodeCacheSize=512m"  # for that many compiled queries
# Ten times Java's own: a short run ends before optimising pays, a long one soon gets there.
OPTIMISED_LATER = (
    "-XX:Tier4InvocationThreshold=50000 -XX:Tier4MinInvocationThreshold=6000 "
    "-XX:Tier4CompileThreshold=150000 -XX:Tier4BackEdgeThreshold=400000"
)
LOOPBACK: Mapping[str, str] = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
}
SMALL: Mapping[str, str] = {
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.leafNodeDefaultParallelism": "1",  # else a task per core, or per small file
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",  # slower for few rows
}
LARGE: Mapping[str, str] = {
    "spark.sql.shuffle.partitions": "64",
    "spark.sql.adaptive.enabled": "true",
    "spark.sql.codegen.wholeStage": "true",
    "spark.sql.codegen.factoryMode": "FALLBACK",
}
GUARD = "guard the expression (try_cast, try_divide, nullif); to see its place, "


class Spark:
    """Session that starts at its first use."""

    def __init__(
        self, settings: SparkSettings, first: "Spark | None" = None, *, is_short: bool = False
    ):
        """Share the application of `first`, if given, in a separate session.

        `is_short`: the process is one command's, and its end may teach Java what to keep.
        """
        self.settings = settings
        self._first = first
        self._is_short = is_short
        self._starting = Lock()
        self._siblings: list[Spark] = []

    @property
    def session(self) -> "SparkSession":
        """The session; the process's own if it has one."""
        with self._starting:
            return self._session

    @cached_property
    def _session(self) -> "SparkSession":
        first = self._first
        session = (
            another_session(self.settings, first.session)
            if first
            else open_session(self.settings, is_short=self._is_short)
        )
        is_remote = has_no_jvm(session)
        if is_remote and first is None:
            check_age(str(remote_of(self.settings)), session.version)
        for name, value in RUNTIME_CONF.items():
            session.conf.set(name, value)
        if is_remote:
            session.registerProgressHandler(Progress())  # type: ignore[arg-type] # any callable will do
        if first is None:
            say_where(session, is_remote=is_remote)
        return session

    def sibling(self) -> "Spark":
        """Return another session of the same application, for work at the same time.

        A session's settings, among them the number of a batch, concern one table at a time.
        """
        sibling = Spark(self.settings, first=self._first or self)
        self._siblings.append(sibling)
        return sibling

    @property
    def is_started(self) -> bool:
        """True if anything has needed the session yet."""
        return "_session" in self.__dict__

    @property
    def is_there(self) -> bool:
        """True if it is installed, or runs elsewhere."""
        return bool(remote_of(self.settings)) or extras.is_installed("spark")

    def tune(self, *, small: bool) -> "SparkSession":
        """Return the session, set up for a small batch (few jobs) or a large one (many tasks)."""
        session, chosen = self.session, SMALL if small else LARGE
        for name in SMALL.keys() - self.settings.conf.keys():
            if name in chosen:
                session.conf.set(name, chosen[name])
            else:
                session.conf.unset(name)
        return session

    @cached_property
    def here(self) -> "Session":
        """A session that computes in this process, without a JVM."""
        try:
            from sluice.interpreter.local_session import Session
        except ImportError as lacking:
            raise MissingDependency(
                f"small batches need a part that PySpark's client {version('pyspark-client')} does "
                f"not have: {lacking}",
                hint="`sluice doctor` names versions that were tested",
            ) from lacking
        return Session()

    def best(
        self,
        work: Callable[["SparkSession"], T],
        size: int,
        limits: Limits,
        *,
        clock: Clock | None = None,
        why: str = "",
        what: str = "",
    ) -> tuple[T, str]:
        """Return what `work` does with a session, and the engine: PROCESS if there is little to do.

        `why`: the reason why Spark does the work, if it is known already. Work that only Spark can
        do is left to it: `work` begins again, with Spark's session set up for `size` bytes to read.
        So it must commit nothing before it has computed everything. The engine is SPARK with the
        reason, unless the settings are the reason. Without Spark, DividedByZero is raised. `clock`
        times the start of Spark. `what`: the work in an error's words; else a batch.
        """
        engine, guard, is_begun = by_spark(self.settings, why), "", False
        if not why and self.settings.computes_here:
            is_begun = True
            from sluice.interpreter import BadValue, DividedByZero
            from sluice.interpreter.local_session import interpreting

            try:
                with interpreting(self.here.upto(limits.held_bytes)) as session:
                    return work(session), PROCESS  # type: ignore[arg-type] # a client like others
            except left_to_spark() as reason:
                if isinstance(reason, DividedByZero) and not self.is_there:
                    raise
                engine = f"{SPARK}: {reason}"
                guard = GUARD if isinstance(reason, BadValue) else ""
        if not remote_of(self.settings):
            cause = why or engine.partition(": ")[2]
            begun = "this small batch" if is_begun else "this batch"
            said = f" ({cause})" if cause else ", by `spark.small_batches`,"
            require("spark", f"{what or begun}{said}", guard)
        with (clock or Clock()).phase("session"):
            tuned = self.tune(small=size <= limits.few_tasks_bytes)
        return work(tuned), engine

    def stop(self) -> None:
        """End the application, if it was started.

        A client's channels are closed here, because they may wait forever if closed while Python
        ends.
        """
        if remote_of(self.settings):
            for sibling in self._siblings:
                sibling.stop()
        if self.is_started and not extras.is_installed("spark"):
            self.session.stop()
        elif self.is_started:
            from py4j.protocol import Py4JError

            with suppress(Py4JError, ConnectionError):  # Java has ended already
                self.session.stop()


def with_spark(settings: SparkSettings, work: Callable[["Spark"], T]) -> T:
    """Return what `work` returns; stop the session afterwards, if one was needed."""
    spark = Spark(settings, is_short=True)
    gc.freeze()  # modules and declarations stay, so no collection looks through them again
    gc.set_threshold(*COLLECTED_AT)
    try:
        with lasting():
            return work(spark)
    finally:
        spark.stop()


def open_session(settings: SparkSettings, *, is_short: bool = False) -> "SparkSession":
    """Open a session by the project's settings or SPARK_REMOTE, or return the one that is there."""
    from pyspark.sql import SparkSession

    hush()
    if remote := remote_of(settings):
        check_server(remote)
        return SparkSession.Builder().remote(remote).getOrCreate()
    require("spark", "this")
    if active := SparkSession.getActiveSession():
        return active
    java = java_home()
    conf = local_conf(settings, is_short=is_short)
    os.environ.pop("SPARK_REMOTE", None)  # PySpark treats an empty one as a server
    os.environ.update(environment())
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.Builder().appName(os.environ.get("SLUICE_APP_NAME", "sluice"))
    for name, value in conf.items():
        builder = builder.config(name, value)
    check_server(conf["spark.master"])
    session = start_or_explain(builder.getOrCreate, java, conf["spark.master"])
    watch(session.sparkContext)
    keep_classes(session.sparkContext._jvm)  # noqa: SLF001
    if process := getattr(session.sparkContext._gateway, "proc", None):  # noqa: SLF001
        METER.add_child(process.pid)
    return session


def another_session(settings: SparkSettings, session: "SparkSession") -> "SparkSession":
    """Open a session of the same application, with separate settings."""
    if remote := remote_of(settings):
        from pyspark.sql import SparkSession

        return SparkSession.Builder().remote(remote).create()
    return session.newSession()


def local_conf(settings: SparkSettings, *, is_short: bool = False) -> dict[str, str]:
    """Return the whole configuration of a Spark that a process starts."""
    found = classpath(drivers=settings.drivers)
    jars = os.pathsep.join(map(str, found))
    logging = f"-Dlog4j2.configurationFile={LOGGING.as_uri()}"
    brings_jars = "s3" in settings.drivers and not settings.master.startswith("local")
    archive = Archive.of(java_home(), found, os.environ).options(may_write=is_short)
    return {
        "spark.master": settings.master,
        "spark.driver.extraClassPath": jars,
        "spark.executor.extraClassPath": jars,
        "spark.driver.extraJavaOptions": f"{CODE_CACHE} {OPTIMISED_LATER} {archive} {logging}",
        "spark.executor.extraJavaOptions": CODE_CACHE,
        **STATIC_CONF,
        **(LOOPBACK if settings.master.startswith("local") else {}),
        **(conf() if "s3" in settings.drivers else {}),
        # Workers may share no disk with this machine.
        **({"spark.jars": ",".join(map(str, found))} if brings_jars else {}),
        **RUNTIME_CONF,
        **settings.conf,
    }


def has_no_jvm(session: "SparkSession") -> bool:
    """True if it is a client's: of a Spark Connect server, or of the interpreter."""
    return any(c.__module__.startswith("pyspark.sql.connect") for c in type(session).__mro__)


def remote_of(settings: SparkSettings) -> str | None:
    """Return the address of the Spark Connect server, if one is to be used."""
    configured = settings.remote if settings.engine == "connect" else None
    return os.environ.get("SPARK_REMOTE") or configured


def conf() -> dict[str, str]:
    """Return the configuration of a Spark to start."""
    hadoop = {f"spark.hadoop.fs.{name}": value for name, value in _settings().items() if value}
    return {**S3.conf, **hadoop}


def _settings() -> dict[str, str]:
    endpoint = endpoint_of("s3://")
    return {
        "s3.impl": "org.apache.hadoop.fs.s3a.S3AFileSystem",
        "s3a.input.stream.type": "classic",  # the newer one prefetches column chunks
        "s3a.create.checksum.algorithm": "SHA256",  # required with object lock
        "s3a.aws.credentials.provider": ",".join(_PROVIDERS),
        "s3a.endpoint": endpoint,
        "s3a.endpoint.region": region(),
        "s3a.path.style.access": "true" if endpoint else "",
    }


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


class Progress:
    """Listener for the progress that a Spark Connect server reports of a session's operations."""

    def __init__(self) -> None:
        self._operation = ""
        self._printed = 0.0

    def __call__(
        self, stages: Any, inflight_tasks: int, operation_id: str | None, done: bool, **_: Any
    ) -> None:
        """Log the operation's progress, unless that was done a short while ago."""
        now = time.monotonic()
        if operation_id and operation_id != self._operation:
            self._operation, self._printed = operation_id, now
        if stages and not done and now - self._printed >= EVERY:
            self._printed = now
            finished = sum(stage.num_completed_tasks for stage in stages)
            known = sum(stage.num_tasks for stage in stages)
            read = sum(stage.num_bytes_read for stage in stages) / 1e6
            _print(finished, known, inflight_tasks, f", {read:,.0f} MB read")


def watch(context: "SparkContext") -> Event:
    """Log the progress of this process's own Spark at intervals, until the event is set."""
    ended = Event()
    Thread(target=_watch, args=(context, ended), name="progress", daemon=True).start()
    return ended


def say_where(session: "SparkSession", *, is_remote: bool) -> None:
    """Log the address of Spark's own pages, if it has any."""
    if not is_remote:
        url = session.sparkContext.uiWebUrl
    elif session.conf.get("spark.ui.enabled", "true") == "true":
        host = session.conf.get("spark.driver.host", "localhost")
        url = f"http://{host}:{session.conf.get('spark.ui.port', UI_PORT)}"
    else:
        url = None
    if url:
        log.info("Spark's own pages: %s", url)


def _watch(context: "SparkContext", ended: Event) -> None:
    """Log the progress of jobs that last from one look to the next."""
    tracker, before = context.statusTracker(), frozenset[int]()
    while not ended.wait(EVERY):
        try:
            jobs = frozenset(tracker.getActiveJobsIds())
            found = [tracker.getStageInfo(nth) for nth in tracker.getActiveStageIds()]
        except Exception:  # noqa: BLE001 Spark has ended, which is reported elsewhere
            return
        stages = [stage for stage in found if stage]
        if stages and jobs & before:
            finished = sum(stage.numCompletedTasks for stage in stages)
            running = sum(stage.numActiveTasks for stage in stages)
            _print(finished, sum(stage.numTasks for stage in stages), running)
        before = jobs


def _print(finished: int, known: int, running: int, more: str = "") -> None:
    log.info("so far %s of %s Spark tasks done, %s running%s", finished, known, running, more)
