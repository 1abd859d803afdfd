# One image for every role: Airflow's components, the Spark master and the Spark worker. So driver and executors have
# the same Python, the same pyspark and the same packages, and a mismatch between them cannot happen.
# The slim image has no providers: those that we need are among our pinned packages.
FROM apache/airflow:slim-3.3.2-python3.11

USER root
RUN apt-get update \
    # The Java of the image's Debian, 17 or 21: Spark runs on both.
    && apt-get install --yes --no-install-recommends default-jre-headless procps \
    && rm -rf /var/lib/apt/lists/* \
    # One name for the Java home on every processor architecture.
    && ln -s "$(dirname "$(dirname "$(readlink -f "$(command -v java)")")")" /opt/java \
    && printf '#!/bin/sh\nexec python -c "from tidemark.cli import app; app(prog_name='\''tidemark'\'')" "$@"\n' > /usr/local/bin/tidemark \
    && chmod +x /usr/local/bin/tidemark \
    && mkdir -p /opt/airflow/collections /opt/airflow/landing \
    && chown -R airflow:0 /opt/airflow/collections /opt/airflow/landing
ENV JAVA_HOME=/opt/java \
    PYSPARK_PYTHON=python3 \
    PYSPARK_DRIVER_PYTHON=python3

USER airflow
COPY --chown=airflow:0 requirements.txt /opt/airflow/requirements.txt
RUN pip install --no-cache-dir --require-hashes --requirement /opt/airflow/requirements.txt

COPY --chown=airflow:0 include /opt/airflow/include
# For containers without mounts; docker-compose.yaml mounts the folders of this project over these.
COPY --chown=airflow:0 dags /opt/airflow/dags
COPY --chown=airflow:0 plugins /opt/airflow/plugins
COPY --chown=airflow:0 spark_apps /opt/airflow/spark_apps
COPY --chown=airflow:0 tools/build_zip.py /opt/airflow/tools/build_zip.py
COPY --chown=airflow:0 tools/byte_code.py /opt/airflow/tools/byte_code.py
ENV PYTHONPATH=/opt/airflow/include \
    TIDEMARK_HOME=/opt/airflow
# The zip comes from the sources of this very image: a stale one would silently run old code in the executors.
RUN python /opt/airflow/tools/build_zip.py \
    && python -c "import pyspark, tidemark; print('pyspark', pyspark.__version__, 'tidemark', tidemark.__version__)"
# Once here instead of in each container, where it would not be kept: a task imports in a third of the time.
RUN python /opt/airflow/tools/byte_code.py \
    "$(python -c 'import pathlib, pandas; print(pathlib.Path(pandas.__file__).parents[1])')" \
    /opt/airflow/include /opt/airflow/dags /opt/airflow/plugins /opt/airflow/spark_apps
