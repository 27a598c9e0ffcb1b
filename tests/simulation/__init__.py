"""A whole job in one thread, from one seed: the production classes, and everything around them simulated.

`world` is clock, queue, dice and trace; `broker`, `network` and `disk` are what fails; `coordinator`, `subtask` and
`driver` are the processes that run production code and are killed; `patches` is the list of what is replaced in
production modules; `run` plays one seed and `verdict` judges what is left.
"""
