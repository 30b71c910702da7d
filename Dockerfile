# Limpet and the HAProxy that it is made for, Debian's. `make image` builds it, with Docker or buildah; it compiles the
# program first, which is static and needs nothing of the image.
FROM debian:trixie-slim

# What apt writes down is different each time; nobody needs it.
RUN apt-get update \
 && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends ca-certificates haproxy \
 && rm -rf /var/lib/apt/lists/* /var/cache/* /var/log/* /etc/haproxy

COPY bin/image/limpet /usr/local/bin/limpet

USER 65532:65532
# HAProxy's signal to finish what is under way; Limpet's own commands take it like SIGTERM.
STOPSIGNAL SIGUSR1
ENTRYPOINT ["limpet"]
