"""A real Slurm of one node on this machine, for the tests: munged, slurmctld and slurmd as children.

Needs root and the packages slurm-wlm and munge; no systemd. Everything lies in one folder.
"""

import os
import shutil
import socket
import subprocess
import time

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch")

# Two partitions share the node. A job of `high` preempts a job of `low`, which is queued again.
CONFIGURATION = """
ClusterName=uper
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller_port}
SlurmdPort={node_port}

SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge/socket
CryptoType=crypto/munge
CredType=cred/munge

StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log

SwitchType=switch/none
MpiDefault=none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SchedulerType=sched/builtin
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides

PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
JobRequeue=1
KillWait=20
ReturnToService=2

NodeName={host} NodeAddr=127.0.0.1 CPUs={cpus} State=UNKNOWN
PartitionName=low Nodes={host} Default=YES MaxTime=INFINITE State=UP PriorityTier=1
PartitionName=high Nodes={host} MaxTime=INFINITE State=UP PriorityTier=10 PreemptMode=OFF
"""


def missing():
    """The reason why this machine cannot run a cluster, or None."""
    absent = [name for name in PROGRAMS if shutil.which(name, path="/usr/sbin:/usr/bin:/sbin:/bin") is None]
    if absent:
        return f"Slurm is not installed (no {', '.join(absent)}): apt-get install slurm-wlm munge"
    return None if os.geteuid() == 0 else "starting Slurm needs root"


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Cluster:
    """`with Cluster(folder, cpus) as cluster:`; cluster.environment makes Slurm's commands talk to it."""

    def __init__(self, folder, cpus):
        self.folder, self.cpus, self.processes = folder, cpus, []
        self.environment = dict(os.environ, SLURM_CONF=str(folder / "slurm.conf"))

    def __enter__(self):
        try:
            self.start_munge()
            self.start_slurm()
            self.wait_until(lambda: "idle" in self.run("sinfo", "--noheader", "--format=%T"), 60)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for process in reversed(self.processes):
            process.terminate()
        for process in reversed(self.processes):
            try:
                process.wait(timeout=15)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def spawn(self, *command):
        log = open(self.folder / f"{command[0]}.out", "ab")
        self.processes.append(subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                               env=self.environment))

    def start_munge(self):
        munge = self.folder / "munge"
        munge.mkdir(parents=True)
        os.chmod(munge, 0o700)
        key = munge / "key"
        key.write_bytes(os.urandom(128))
        os.chmod(key, 0o400)
        # --force: the folders above are those of a test, not /etc.
        self.spawn("munged", "--foreground", "--force", f"--socket={munge}/socket", f"--key-file={key}",
                   f"--pid-file={munge}/pid", f"--log-file={munge}/log", f"--seed-file={munge}/seed")
        self.wait_until((munge / "socket").exists, 20)

    def start_slurm(self):
        for name in ("state", "spool"):
            (self.folder / name).mkdir()
        (self.folder / "slurm.conf").write_text(CONFIGURATION.format(
            folder=self.folder, host=socket.gethostname().split(".")[0], cpus=self.cpus,
            controller_port=free_port(), node_port=free_port()))
        self.spawn("slurmctld", "-D")
        self.spawn("slurmd", "-D")

    def run(self, *command):
        result = subprocess.run([str(word) for word in command], env=self.environment, capture_output=True,
                                text=True, timeout=60)
        return result.stdout

    def queue(self):
        """{element or job: state}, as '12_1': 'RUNNING'."""
        lines = self.run("squeue", "--noheader", "--array", "--format=%i %T").splitlines()
        return dict(line.split() for line in lines)

    def wait_until(self, condition, seconds):
        end = time.monotonic() + seconds
        while not condition():
            for process in self.processes:
                assert process.poll() is None, f"{process.args[0]} ended; see {self.folder}"
            assert time.monotonic() < end, f"waited {seconds} s in vain; see {self.folder}"
            time.sleep(0.2)
