# The studio for one person (docs/how-to/studio.md). Build it from the root of the repository:
#   docker build -f deploy/studio.Dockerfile -t privacygames-studio .
#   docker run --rm --network host --user "$(id -u)" -v "$HOME/.local/share/privacygames:/data/privacygames" \
#     privacygames-studio
# It listens on the loopback address only. Published on a port, it needs a token, and refuses to start without one:
#   docker run --rm -p 127.0.0.1:8642:8642 -e PRIVACYGAMES_TOKEN="$(openssl rand -base64 24)" -v … privacygames-studio \
#     --host 0.0.0.0 --name localhost --name 127.0.0.1
FROM python:3.12-slim AS build
RUN apt-get update -qq && apt-get install -y -qq --no-install-recommends gcc libc6-dev npm && rm -rf /var/lib/apt/lists/*
COPY pyproject.toml constraints.txt README.md LICENSE MANIFEST.in /source/
COPY tools /source/tools
COPY src /source/src
RUN python -m venv /opt/privacygames \
 && /opt/privacygames/bin/pip install --no-cache-dir -c /source/constraints.txt numpy
RUN /opt/privacygames/bin/python /source/tools/vendor_page.py
RUN /opt/privacygames/bin/pip install --no-cache-dir -c /source/constraints.txt '/source[studio]'

FROM python:3.12-slim
RUN useradd --system --uid 10001 --home-dir /nonexistent --shell /usr/sbin/nologin privacygames \
 && install -d -o 10001 -m 700 /data
COPY --from=build /opt/privacygames /opt/privacygames
ENV XDG_DATA_HOME=/data OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE=1
USER 10001
VOLUME /data
EXPOSE 8642
STOPSIGNAL SIGTERM
ENTRYPOINT ["/opt/privacygames/bin/privacygames", "studio", "--no-browser"]
