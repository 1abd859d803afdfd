# The environment of everything local: Airflow, its tasks, the Spark drivers they start, the command line.
# Sourced, never run: `. tools/env.sh`, or `tools/run COMMAND…`. The container image has its own (docker-compose.yaml).
#
# What another deployment on the same machine must differ in can be set from outside:
#   PORT                   where the Airflow UI listens (8095)
#   TIDEMARK_AIRFLOW_HOME  Airflow's database, logs and login (.airflow)
#   TIDEMARK_AIRFLOW_SOCKETS  where its database listens: a short folder of one's own (.airflow/sockets)
#   TIDEMARK_ROOT          where the collections live: a folder or s3:// (.tidemark/collections)
#   TIDEMARK_LANDING       where change files arrive (.tidemark/landing)
#   TIDEMARK_LANDINGS      where else a run's param `landing` may point: folders, s3:// prefixes, commas between (none)
#   TIDEMARK_FUNCTIONS     folders with modules that collection files may name, beside dags, plugins, include (none)
#   TIDEMARK_SPARK_MASTER  the Spark master while Airflow has no connection spark_default (local[2])
#   TIDEMARK_LAUNCHER      submit: a spark-submit per step; resident: one warm Spark (resident)
#   TIDEMARK_SPARK_WHEN    auto: Spark is asked for what reads much; always: for all that reads data (auto)
#   TIDEMARK_BACKFILL_INTERVALS  how many intervals a run of a backfill is about at most (31)
#   TIDEMARK_READY_WITHIN  how long after an interval's end its files are waited for (12h)
#   TIDEMARK_GATE_ASKS     whether a gate whose data do not pass asks what to do: on, off (on)
#   TIDEMARK_ROWS_FOR      whom the pages in Airflow show rows: editors, readers of the DAG, nobody (editors)
#   TIDEMARK_RESPONSE_TIMEOUT  how long it waits for an answer, and for a mended file (1d)
#   TIDEMARK_KEEP_VERSIONS how long the collector leaves superseded versions readable (7d)

TIDEMARK_HOME="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
export TIDEMARK_HOME
export TIDEMARK_ROOT="${TIDEMARK_ROOT:-$TIDEMARK_HOME/.tidemark/collections}"
export TIDEMARK_LANDING="${TIDEMARK_LANDING:-$TIDEMARK_HOME/.tidemark/landing}"
export TIDEMARK_LAUNCHER="${TIDEMARK_LAUNCHER:-resident}"

# One interpreter for Airflow, drivers and executors; `spark-submit` and `airflow` are looked up on PATH.
export PATH="$TIDEMARK_HOME/.venv/bin:$PATH"
export PYTHONPATH="$TIDEMARK_HOME/include"
export PYSPARK_PYTHON="$TIDEMARK_HOME/.venv/bin/python"
export PYSPARK_DRIVER_PYTHON="$PYSPARK_PYTHON"
# A killed JVM would leave its counters in the system's temporary folder.
export SPARK_SUBMIT_OPTS="${SPARK_SUBMIT_OPTS:-} -XX:-UsePerfData" SPARK_LAUNCHER_OPTS="-XX:-UsePerfData"
# With the classes of Spark that `make setup` has kept (tools/class_archive.py), it takes three fifths of the processor time to start.
if [ -f "$TIDEMARK_HOME/build/spark-classes.jsa" ] && [[ "$TIDEMARK_HOME" != *[\"\\]* ]]; then
  SPARK_SUBMIT_OPTS+=" \"-XX:SharedArchiveFile=$TIDEMARK_HOME/build/spark-classes.jsa\" -Xlog:cds*=off"
fi
# Pictures of windows: matplotlib keeps a list of the machine's fonts, else in the user's home.
export MPLCONFIGDIR="${MPLCONFIGDIR:-$TIDEMARK_HOME/build/matplotlib}"
unset SPARK_HOME # a Spark installed elsewhere would answer with its own version of pyspark

export AIRFLOW_HOME="${TIDEMARK_AIRFLOW_HOME:-$TIDEMARK_HOME/.airflow}"
export AIRFLOW__CORE__DAGS_FOLDER="$TIDEMARK_HOME/dags"
export AIRFLOW__CORE__PLUGINS_FOLDER="$TIDEMARK_HOME/plugins"
export AIRFLOW__CORE__LOAD_EXAMPLES=False
export AIRFLOW__CORE__EXECUTOR=LocalExecutor
export AIRFLOW__CORE__PARALLELISM=4
export AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS="${TIDEMARK_USERS:-admin:admin}"
export AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE="$AIRFLOW_HOME/passwords.json"

# Airflow's database: a PostgreSQL of its own (tools/postgres.py), on a socket that only this user reaches. A socket's
# path has 103 bytes at most, and this one is part of an address: where the home is too deep, or has other characters
# than these in its name, the socket is in a private folder beside other temporary things.
fits_a_socket() { local LC_ALL=C; [ "${#1}" -le 88 ] && [[ "$1" != *[!A-Za-z0-9._/-]* ]]; }
if [ -z "${TIDEMARK_AIRFLOW_SOCKETS:-}" ]; then
  TIDEMARK_AIRFLOW_SOCKETS="$AIRFLOW_HOME/sockets"
  fits_a_socket "$TIDEMARK_AIRFLOW_SOCKETS" ||
    TIDEMARK_AIRFLOW_SOCKETS="/tmp/tidemark-$(id -u)-$(printf %s "$AIRFLOW_HOME" | cksum | cut -d ' ' -f 1)"
fi
export TIDEMARK_AIRFLOW_SOCKETS
export AIRFLOW__DATABASE__SQL_ALCHEMY_CONN="postgresql+psycopg2://postgres@/airflow?host=$TIDEMARK_AIRFLOW_SOCKETS"

# 127.0.0.1: Airflow's default host is every interface. Tasks reach the API server by its own address,
# which must be told whenever the port is not 8080.
PORT="${PORT:-8095}"
export AIRFLOW__API__HOST=127.0.0.1
export AIRFLOW__API__PORT="$PORT"
export AIRFLOW__API__BASE_URL="http://127.0.0.1:$PORT"
export AIRFLOW__CORE__EXECUTION_API_SERVER_URL="http://127.0.0.1:$PORT/execution/"

# A new or edited collection file shows up within seconds, not after five minutes.
export AIRFLOW__DAG_PROCESSOR__REFRESH_INTERVAL=10
export AIRFLOW__DAG_PROCESSOR__MIN_FILE_PROCESS_INTERVAL=10
export AIRFLOW__CORE__MIN_SERIALIZED_DAG_UPDATE_INTERVAL=5

# A killed worker is noticed within a minute: 40 s without a heartbeat, looked for every 5 s (defaults 300 and 10).
export AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT=40
export AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT_DETECTION_INTERVAL=5
export AIRFLOW__SCHEDULER__ORPHANED_TASKS_CHECK_INTERVAL=30

# How long the scheduler sleeps when it found nothing to do. With the default of 1 s each task waits for about a second
# until it is started: a run of nine empty tasks takes 11.07 s, with 0.25 s it takes 4.21 s. The price: an idle scheduler
# takes 6.4 % of a core instead of 2.4 %.
export AIRFLOW__SCHEDULER__SCHEDULER_IDLE_SLEEP_TIME="${AIRFLOW__SCHEDULER__SCHEDULER_IDLE_SLEEP_TIME:-0.25}"

# Great Expectations logs some 200 lines per import.
export AIRFLOW__LOGGING__NAMESPACE_LEVELS=great_expectations=WARNING

# The master while there is no connection `spark_default`. Not that connection: one in the environment would go before
# what a user makes in the UI.
export TIDEMARK_SPARK_MASTER="${TIDEMARK_SPARK_MASTER:-local[2]}"
