"""Reports that stand alone: one HTML file, charts inside, nothing fetched, nothing run."""
