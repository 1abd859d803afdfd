"""The plugin's pages: read-only, authenticated, no build. Imported by the API server alone, with the first request."""
