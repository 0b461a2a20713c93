# evictstream as a container: `docker build -t evictstream .`, then `docker run --rm evictstream --help`.
#
# What runs has no compiler and no tool for tests, is nobody in particular, and writes no file: start it with a
# read-only root. Settings come from the environment (docs/settings.md).

# An exact version; a Python that the locked packages have wheels for and that the tests have passed on. A registry may
# move a tag all the same, unlike a hash: who must have the very same base adds its digest (`@sha256:...`), which only the
# registry tells. Named once, because an environment cannot be carried from one version of Python to another.
FROM python:3.13.15-slim-trixie AS base

# The base image has no bytecode of the standard library. A process that may write nothing would compile what it imports
# at each start, which takes as long as all else until a worker or an executor acts.
RUN ["python", "-c", "import compileall, sysconfig; compileall.compile_dir(sysconfig.get_path('stdlib'), quiet=2)"]


FROM base AS build

ENV PIP_DISABLE_PIP_VERSION_CHECK=1 \
    PIP_NO_CACHE_DIR=1 \
    PIP_ROOT_USER_ACTION=ignore

# An environment of its own is one folder to copy; without pip, which nobody needs there.
RUN ["python", "-m", "venv", "--without-pip", "/opt/evictstream"]

# Before the project's files, so that a change of code does not fetch everything again. What builds packages comes first,
# from a lock of its own, and no build may fetch anything: pip's isolated builds would take the newest of all that a
# package asks for, and run it unchecked. All are wheels but Faust, which has none for arm64, and is built in pure Python
# for each machine alike. Records do not pass through what it could compile.
COPY deploy/build.txt /src/deploy/
RUN ["pip", "install", "--require-hashes", "--only-binary", ":all:", "--requirement", "/src/deploy/build.txt"]

COPY requirements/runtime.txt /src/requirements/
RUN ["pip", "wheel", "--no-deps", "--no-build-isolation", "--only-binary", ":all:", "--no-binary", "faust-streaming", \
     "--wheel-dir", "/wheels", "--require-hashes", "--requirement", "/src/requirements/runtime.txt"]

# The project itself, offline: whatever it needs is there by now, or the lock is wrong and the build should fail.
COPY pyproject.toml README.md LICENSE /src/
COPY models /src/models
COPY kit /src/kit
COPY streams /src/streams
COPY src/evictstream/__init__.py src/evictstream/py.typed /src/src/evictstream/
COPY examples/incidents/zone-outage-part-recovers-no-evictor \
     /src/examples/incidents/zone-outage-part-recovers-no-evictor
RUN ["pip", "wheel", "--no-index", "--no-deps", "--no-build-isolation", "--wheel-dir", "/wheels", "/src"]
RUN ["pip", "--python", "/opt/evictstream/bin/python", "install", \
     "--no-index", "--find-links", "/wheels", "evictstream"]


FROM base

LABEL org.opencontainers.image.title="evictstream" \
      org.opencontainers.image.description="Kubernetes taint-based eviction as an event-streaming service" \
      org.opencontainers.image.version="0.1.0" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.base.name="python:3.13.15-slim-trixie"

# Owned by root and compiled to bytecode already: the process cannot change its own code, and has nothing to write.
COPY --from=build /opt/evictstream /opt/evictstream

# Unbuffered, so that the last line before a crash is in the log.
ENV PATH=/opt/evictstream/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1

# A number, because Kubernetes cannot tell whether a name is root's (`runAsNonRoot`); above those of usual accounts.
USER 10001:10001

# What the worker obeys: it commits what was read, leaves the group and ends with 0. That takes up to 25 s, so give it a
# longer grace time. Run it behind a small init (`--init`, `init: true`): process 1 ignores signals until it has asked
# for them, and the worker asks only after it has found its topics in order.
STOPSIGNAL SIGTERM

# No HEALTHCHECK, on purpose. A worker that cannot go on, or is stuck, ends by itself with one line and an exit code, and
# a restart policy sees that; nobody restarts a container because Docker calls it unhealthy. A check would be the price of
# a Python start each time. Who probes over HTTP, as Kubernetes does, has /livez and /readyz (docs/operations.md).

# No shell in between, so that signals and exit codes arrive.
ENTRYPOINT ["evictstream"]
CMD ["worker"]
