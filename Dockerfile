# docker build -t tplrepro . && docker run -it -v "$PWD/build:/tplrepro/build" tplrepro make figures
FROM python:3.11-slim
RUN apt-get update && apt-get install --yes --no-install-recommends make git && rm -rf /var/lib/apt/lists/*
LABEL org.opencontainers.image.title="tplrepro" org.opencontainers.image.version="0.4.0"
WORKDIR /tplrepro
COPY . .
RUN make env
CMD ["make", "figures"]
