"""A page that shows jobs in a browser, and the JSON behind it: read only (docs/ui/README.md).

What is shown of a running job its coordinator is asked for, when somebody looks; what else there is stands in the
ledger, so a job that does not run is shown by the same page. Nobody looks, and nothing is asked or read.
"""
