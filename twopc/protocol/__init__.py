"""The checkpoint protocol in pure code: words, facts and decisions that both planes share.

Nothing here imports a clock, a socket, a file, a thread or a heavy dependency; the build forbids it.

Theory of operation. The coordinator reserves an id durably, then triggers. Every subtask flushes, snapshots and
pre-commits, stores its snapshot, and acknowledges. With all acknowledgements the coordinator stores the metadata and
then creates the completion record: that creation is the commit point. Only then are subtasks told, and only then do
they commit. After a crash the latest completed checkpoint is restored; its committables are settled by asking the
broker (`recovery`), the confirmations stored, and only then is any transactional id initialised again.
"""
