"""The actions of a driver at its edge: a closed set of values, each with the type of its answer."""

from twopc.driver.actions.clusters import Clusters, FindClusters
from twopc.driver.actions.coordinator import Confirm, EndAttempt, RequestStop, SettleLoss, StartAttempt, StoreStarts
from twopc.driver.actions.input import FindCourse, FindStanding, FindUnreadable, PlanSplits, refuse_what_no_sink_takes
from twopc.driver.actions.output import (
    AbortLingering,
    Claim,
    CloseCommitter,
    CommitGlobally,
    CommitHeld,
    CompareOutputs,
    FindGlobalCommit,
    FindTraces,
    GiveUp,
    OpenCommitter,
    Settle,
)
from twopc.driver.actions.own import NameDamage, Reach
from twopc.driver.actions.subtasks import Drain, FindHostNotice, FindShortage, Kill, RemoveWork, Submit

__all__ = [
    "AbortLingering",
    "Claim",
    "CloseCommitter",
    "Clusters",
    "CommitGlobally",
    "CommitHeld",
    "CompareOutputs",
    "Confirm",
    "Drain",
    "EndAttempt",
    "FindClusters",
    "FindCourse",
    "FindGlobalCommit",
    "FindHostNotice",
    "FindShortage",
    "FindStanding",
    "FindTraces",
    "FindUnreadable",
    "GiveUp",
    "Kill",
    "NameDamage",
    "OpenCommitter",
    "PlanSplits",
    "Reach",
    "RemoveWork",
    "RequestStop",
    "Settle",
    "SettleLoss",
    "StartAttempt",
    "StoreStarts",
    "Submit",
    "refuse_what_no_sink_takes",
]
