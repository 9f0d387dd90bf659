# A machine for this project from Debian's packages, and on it a checkout that is built. The user is not root.
#
#   docker build -t pystorm-source . && docker run --rm -it pystorm-source              # make demo
#   docker run --rm -it pystorm-source bash                                            # a shell with everything on PATH
FROM debian:trixie-slim AS tools
RUN apt-get update \
    && apt-get install -y --no-install-recommends bash-completion ca-certificates gcc git libc6-dev make \
        openjdk-21-jre-headless procps python3 python3-dev python3-venv \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --create-home --shell /bin/bash user
USER user
WORKDIR /home/user

FROM tools
RUN mkdir pystorm-source
WORKDIR /home/user/pystorm-source
COPY --chown=user:user . .
RUN make use
ENV PATH=/home/user/pystorm-source/.venv/bin:$PATH
CMD ["make", "demo"]
