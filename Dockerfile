# The service on CPUs, with the embedded encoder. From a clone:
#   docker build -t outword .
#   docker run --rm --stop-timeout 100 -p 127.0.0.1:8000:8000 -e OUTWORD_TOKEN -v "$PWD/pets.outword:/detector:ro" outword
FROM python:3.11-slim AS build
COPY . /src
# The locked versions, by their hashes; PIP_CONSTRAINT holds for what builds the package, too.
RUN python -m venv /opt/outword \
    && /opt/outword/bin/pip install --no-cache-dir --no-compile --no-deps --require-hashes -r /src/requirements-serve.lock \
    && PIP_CONSTRAINT=/src/constraints.txt /opt/outword/bin/pip install --no-cache-dir --no-compile --no-deps /src \
    && /opt/outword/bin/pip check

FROM python:3.11-slim
COPY --from=build /opt/outword /opt/outword
RUN useradd --system --create-home --home-dir /home/outword outword
USER outword
WORKDIR /home/outword
EXPOSE 8000
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s \
    CMD ["/opt/outword/bin/python", "-c", "import urllib.request as u; u.urlopen('http://127.0.0.1:8000/healthz', timeout=3)"]
# Without OUTWORD_TOKEN it does not start: in a container it listens for other machines.
ENTRYPOINT ["/opt/outword/bin/outword", "serve", "--host", "0.0.0.0"]
CMD ["/detector"]
