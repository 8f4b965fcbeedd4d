"""The answers of sbatch and qsub to a submission that fails, and what each means for the job.

The texts are those of the schedulers' own sources: slurm_errno.c and sbatch.c of Slurm, pbs_messages.c and
qsub.c of OpenPBS, pbs_error_db.h and qsub_functions.c of Torque.
"""

from __future__ import annotations

import re
from enum import Enum
from typing import NamedTuple


class Meaning(Enum):
    """What a failed submission means."""

    REFUSED = "there is no job, and the same request fails again"
    BUSY = "there is no job, and the same request may succeed later"
    UNSURE = "there may be a job"


class _Answer(NamedTuple):
    """The texts of an answer. ``retries``: the command itself sends the request again after this answer, and
    does not print whether an earlier request was lost; only a fast answer is the first one."""

    meaning: Meaning
    texts: tuple[str, ...]
    retries: bool = False


# A row counts only if the output has no text of an earlier one: a command that repeats its request prints
# each answer, and any request may have been the one that made a job.
_ANSWERS = (
    # The request was sent, and the connection failed before the answer came.
    _Answer(
        Meaning.UNSURE,
        (
            r"timed out|timeout|zero bytes|end of file|reset by peer|broken pipe|protocol",
            # Slurm: _remap_slurmctld_errno of slurm_protocol_api.c, and slurm_submit_batch_job of submit.c
            r"\((send|receive|shutdown) failure\)|message (send|receive) failure",
            r"communication shutdown failure|unexpected message received",
            # OpenPBS: daemon_submit of qsub_sup.c. qsub submits by an earlier qsub that waits in the
            # background, and this one ended before it answered.
            r"failed to recv data",
            # Torque: PBSE_SOCKET_READ, PBSE_SOCKET_WRITE, PBSE_SOCKET_CLOSE, PBSE_TIMEOUT of a request
            r"(reading data from|writing data to) socket|socket close detected|submit error \(time out\)",
        ),
    ),
    # No connection was made, so that nothing was sent.
    _Answer(
        Meaning.BUSY,
        (
            # Slurm: _open_controller of slurm_protocol_api.c
            r"unable to contact slurm controller \(connect failure\)",
            # OpenPBS: do_connect of qsub.c. Torque: main_func of qsub_functions.c. Numbers of Linux: the
            # network or the host is not there, or refuses.
            r"qsub: cannot connect to server \S* ?\(errno=(11|101|111|113)\)",
            # OpenPBS: PBSE_SYSTEM, PBSE_NOCONNECTS. Torque prints a text behind the number.
            r"qsub: cannot connect to server \S* ?\(errno=(15010|15033)\)(?! )",
            # Torque, whose numbers depend on its version: PBSE_NOCONNECTS, PBSE_SOCKET_FAULT, PBSE_CONNECT,
            # PBSE_SERVER_NOT_FOUND, PBSE_SERVER_BUSY, PBSE_CLIENT_CONN_NOT_FOUND, PBSE_DOMAIN_SOCKET_FAULT
            r"qsub: cannot connect to server \S* ?\(errno=\d+\) (no free connections"
            r"|unable to get connection to socket|can not establish connection"
            r"|could not connect to batch server|pbs server is currently too busy"
            r"|client connection not found|could not connect to trqauthd)",
        ),
    ),
    # The scheduler has no time, starts, ends, or changes to its backup.
    _Answer(
        Meaning.BUSY,
        (
            # Slurm: EAGAIN, ESLURM_NODES_BUSY and ESLURM_PORTS_BUSY, after which main of sbatch.c repeats the
            # request for two minutes. EAGAIN: _set_job_id of job_mgr.c, and in older versions MaxJobCount.
            r"submission failed: resource temporarily unavailable",
            r"submission failed: (requested nodes are busy|required ports are in use)",
            r"submission failed: rate limit exceeded",  # rpc_enqueue of rpc_queue.c
            r"submission failed: (slurm backup )?controller (is )?in standby mode",  # proc_req.c
            # PBSE_SVRDOWN: dispatch_request of process_request.c, of OpenPBS and of Torque
            r"request not allowed: server shutting down",
        ),
    ),
    # Torque: PBSE_SERVER_BUSY, process_request.c; main_func of qsub_functions.c sends the request again.
    _Answer(Meaning.BUSY, (r"submit error \(pbs server is currently too busy",), retries=True),
    # A limit on the number of jobs, which ends when another job ends.
    _Answer(
        Meaning.BUSY,
        (
            r"submission failed: maxjobcount limit reached",  # job_allocate of Slurm's job_mgr.c
            # Slurm: acct_policy.c gives the reason, and _job_create of job_mgr.c sends it with the error
            r"\b(qosgrpsubmitjobslimit|qosmaxsubmitjobperuserlimit|assocgrpsubmitjobslimit|assocmaxsubmitjoblimit"
            r"|maxsubmitjobsperaccount)\b",
            # PBSE_MAXQUED, PBSE_MAXUSERQUED: svr_jobfunc.c of Torque. PBSE_ENTLIMCT: svr_func.c of OpenPBS
            r"maximum number of jobs (in 'q' state )?(for (user|group|project) \S+ )?already in"
            r" (queue|complex)",
            r"would exceed (queue \S+|complex)'s per-(user|group|project) limit",
        ),
    ),
    # Answers that a slow scheduler, too, gives for good.
    _Answer(
        Meaning.REFUSED,
        (
            r"submission failed: (invalid (account|qos|partition|feature|generic)|requested (node|time)"
            r"|job violates accounting|user's group not permitted|access/permission denied|more processors)",
            r"system submissions disabled",  # Slurm: _slurm_rpc_submit_batch_job of proc_req.c
            r"qsub: (submit error \()?(unknown queue|unauthorized request|illegal attribute|invalid account"
            r"|queue is not enabled|access to queue is denied|job (violates|exceeds) queue)",
        ),
    ),
)  # fmt: skip


def meaning(text: str, fast: bool) -> Meaning:
    """Return what the output of a failed submission means; ``fast``: the command ended within a few seconds.

    An unknown answer that comes fast is one of the scheduler; later it may be one of the connection, and the
    scheduler may still take the job.
    """
    for one in _ANSWERS:
        if any(re.search(pattern, text, re.IGNORECASE) for pattern in one.texts):
            return one.meaning if fast or not one.retries else Meaning.UNSURE
    return Meaning.REFUSED if fast else Meaning.UNSURE
