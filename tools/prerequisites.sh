# What the project needs from the machine: Python 3.11+ with venv, Java 17+. Sourced by tools/setup and tools/doctor.

readonly GET_PYTHON="Debian/Ubuntu: sudo apt-get install python3 python3-venv; macOS: brew install python@3.13; or set PYTHON=/path/to/python3"
readonly GET_JAVA="Debian/Ubuntu: sudo apt-get install openjdk-17-jre-headless (or openjdk-21-jre-headless); macOS: brew install --cask temurin@17; or set JAVA_HOME"

# Print the first usable interpreter, or fail with one line that says what was found instead.
find_python() {
  local candidate found=""
  for candidate in ${PYTHON:-} python3 python3.13 python3.12 python3.11 python3.14; do
    command -v "$candidate" >/dev/null 2>&1 || continue
    # 3.15 is not supported by Airflow 3.3 and Great Expectations 1.24.
    if "$candidate" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 15))' 2>/dev/null; then
      if "$candidate" -c 'import ensurepip, venv' 2>/dev/null; then
        command -v "$candidate"
        return 0
      fi
      found="$candidate has no venv module"
    elif [ -z "$found" ]; then
      found="$candidate is $("$candidate" -c 'import platform; print(platform.python_version())' 2>/dev/null || echo "not usable")"
    fi
  done
  echo "Python 3.11 to 3.14 with venv is needed (${found:-none found on PATH}). $GET_PYTHON" >&2
  return 1
}

# Print the major version of the Java that Spark will use, or fail with one line.
java_major() {
  local java=java banner major
  if [ -n "${JAVA_HOME:-}" ]; then java="$JAVA_HOME/bin/java"; fi
  # macOS has a stub `java` that only says where to get one: it fails, so it counts as missing.
  if ! command -v "$java" >/dev/null 2>&1 || ! banner="$("$java" -XX:-UsePerfData -version 2>&1)"; then
    echo "Java 17 or newer is needed (none found${JAVA_HOME:+ at JAVA_HOME=$JAVA_HOME}). $GET_JAVA" >&2
    return 1
  fi
  major="$(printf '%s\n' "$banner" | sed -n 's/.* version "\([0-9]*\).*/\1/p' | head -n 1)" # "1.8.0_392" is Java 8, and reads as 1
  if [ "${major:-0}" -lt 17 ]; then
    echo "Java 17 or newer is needed (found: $(printf '%s\n' "$banner" | head -n 1)). $GET_JAVA" >&2
    return 1
  fi
  echo "$major"
}
