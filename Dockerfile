# The leaderboard's server: one image for web processes and workers. docs/host.md says how it is run.
FROM python:3.11-slim

ENV PIP_NO_CACHE_DIR=1 \
    PIP_DISABLE_PIP_VERSION_CHECK=1 \
    PYTHONUNBUFFERED=1 \
    HF_HUB_DISABLE_TELEMETRY=1 \
    CIR_LEADERBOARD_ACCOUNTS=tokens \
    CIR_LEADERBOARD_HOME=/state \
    CIR_CACHE_HOME=/state/cache \
    HF_HOME=/state/huggingface

RUN useradd --uid 10001 --create-home cir && mkdir /state && chown cir /state
WORKDIR /app
COPY constraints.txt setup.cfg pyproject.toml README.md LICENSE ./
COPY cir_metrics cir_metrics
COPY cir_datasets cir_datasets
COPY submissions submissions
COPY leaderboard leaderboard
# Wheels only: the image has no compiler, and needs none.
RUN pip install --only-binary=:all: -c constraints.txt ".[server]"

USER cir
VOLUME /state
EXPOSE 7860
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s \
    CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:7860/health', timeout=4)"]
# The networks of Docker: a container is reached through a proxy in another one, or on its machine.
CMD ["cir", "leaderboard", "serve", "--host", "0.0.0.0", "--behind-proxy", "172.16.0.0/12", "--port", "7860"]
