"""Examples of a few records each, worked out by hand: what streams make of them, by the rules of time.

Others of their kind stand where their operator's other tests do: what a crash between two records leaves in
`tests/testing/memory/test_windows.py`, records of no time and of the far future in `tests/operators`, inputs that are
waited for in `tests/runtime/test_event_time_order.py`, streams by another key in `tests/testing/memory/test_key_by.py`
and `tests/simulation`.
"""
