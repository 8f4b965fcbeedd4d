# Made by jobgen; to be built in a checkout of jobgen: docker build -t train -f THIS-FILE CHECKOUT
FROM quay.io/ascend/cann:8.3.rc2-910b-ubuntu22.04-py3.11

# What DeepSpeed's ops compile with, MPI, and python3 with its headers.
# hadolint ignore=DL3008
RUN apt-get update \
  && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends \
    g++ git libopenmpi-dev ninja-build openmpi-bin openssh-client python3-dev python3-venv \
  && rm -rf /var/lib/apt/lists/*

# CANN is the image's, the driver the host's: it is mounted when a job starts.
ENV ASCEND_HOME_PATH=/usr/local/Ascend/ascend-toolkit/latest
ENV LD_LIBRARY_PATH=/usr/local/Ascend/driver/lib64:/usr/local/Ascend/driver/lib64/common:/usr/local/Ascend/driver/lib64/driver:$LD_LIBRARY_PATH
RUN test -d "$ASCEND_HOME_PATH"

# torch, DeepSpeed, mpi4py and the training module, in an environment of their own.
ENV PATH=/opt/train/bin:$PATH
COPY . /opt/jobgen
RUN python3 -m venv /opt/train \
  && pip install --no-cache-dir --extra-index-url https://download.pytorch.org/whl/cpu "/opt/jobgen[train,npu]"
