"""A whole job in real processes, hit at each named place, and a judgement from outside.

    rig = Rig("127.0.0.1:9092", folder, "cell-1", "filled-input")
    with rig.driver(ArmedFault(CrashPoint.BEFORE_COMMIT, checkpoint=4, subtask=0)) as driver:
        driver.finish()
    assert judge(rig) == []

`rig` is one job on topics and folders of its own; `cells` says which process is hit where; `scenes` how it is hit
and replaced; `judge` compares everything that the job left with what its input says it must be.
"""
