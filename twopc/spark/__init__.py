"""The only importer of pyspark: hosts the subtasks as one barrier stage of long-running Python tasks."""
