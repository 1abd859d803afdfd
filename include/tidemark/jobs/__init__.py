"""Plan, execute, apply, commit: one module per step. What Airflow, the command line and tests all call."""
