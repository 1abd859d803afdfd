"""Imports what the steps import: a warm server does it once, before its first run (resident/server_folder.py)."""

from tidemark.jobs import app
from tidemark.jobs.steps import init
from tidemark.jobs.steps.declared import STEPS

MODULES = (app, init, *(step.module for step in STEPS.values()))
