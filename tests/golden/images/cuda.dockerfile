# Made by jobgen; to be built in a checkout of jobgen: docker build -t train -f THIS-FILE CHECKOUT
FROM nvidia/cuda:12.8.1-cudnn-devel-ubuntu22.04

# What DeepSpeed's ops compile with, MPI, and python3 with its headers.
# hadolint ignore=DL3008
RUN apt-get update \
  && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends \
    g++ git libopenmpi-dev ninja-build openmpi-bin openssh-client python3-dev python3-venv \
  && rm -rf /var/lib/apt/lists/*

ENV CUDA_HOME=/usr/local/cuda

# torch, DeepSpeed, mpi4py and the training module, in an environment of their own.
ENV PATH=/opt/train/bin:$PATH
COPY . /opt/jobgen
RUN python3 -m venv /opt/train \
  && pip install --no-cache-dir --extra-index-url https://download.pytorch.org/whl/cu128 "/opt/jobgen[train]"
