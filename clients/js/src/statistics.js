// Statistics of the peer connection, as rates per second.

/** Samples `getStats()`; rates are over the time since the previous sample. */
export class Sampler {
  #before = new Map(); // the report's id → {time, bytes, packets, lost}
  #pc = null; // that it sampled last: another one's reports may have the same ids

  /**
   * Returns `{time, roundTrip, received, sent}`.
   *
   * Each of `received` has the `mid` of its m-line, each of `sent` its `rid` too; `bitrate` is in
   * bits a second, `loss` in percent since the last sample, `jitter` and `roundTrip` in seconds.
   */
  async sample(pc) {
    if (pc !== this.#pc) this.#before.clear();
    this.#pc = pc;
    const reports = await pc.getStats();
    const sample = { time: Date.now(), roundTrip: null, received: [], sent: [] };
    const seen = new Set();
    for (const report of reports.values()) {
      const codec = reports.get(report.codecId)?.mimeType?.split("/")[1] ?? null;
      if (report.type === "inbound-rtp") {
        seen.add(report.id);
        sample.received.push(this.#received(report, codec));
      } else if (report.type === "outbound-rtp") {
        seen.add(report.id);
        sample.sent.push(this.#sent(report, codec, reports.get(report.remoteId)));
      } else if (report.type === "candidate-pair" && report.nominated) {
        sample.roundTrip = report.currentRoundTripTime ?? sample.roundTrip;
      }
    }
    for (const id of this.#before.keys()) if (!seen.has(id)) this.#before.delete(id);
    return sample;
  }

  #received(report, codec) {
    const delta = this.#delta(report, report.bytesReceived, report.packetsReceived, report.packetsLost);
    const expected = delta.packets + delta.lost;
    return {
      mid: report.mid ?? null,
      track: report.trackIdentifier ?? null,
      kind: report.kind,
      codec,
      width: report.frameWidth ?? 0,
      height: report.frameHeight ?? 0,
      frameRate: report.framesPerSecond ?? 0,
      bitrate: delta.bitrate,
      loss: expected > 0 ? (100 * Math.max(delta.lost, 0)) / expected : 0,
      jitter: report.jitter ?? 0,
      framesDecoded: report.framesDecoded ?? 0,
      keyFramesDecoded: report.keyFramesDecoded ?? 0,
      framesDropped: report.framesDropped ?? 0,
      freezeCount: report.freezeCount ?? 0,
      packetsReceived: report.packetsReceived ?? 0,
      packetsLost: report.packetsLost ?? 0,
      bytesReceived: report.bytesReceived ?? 0,
      nackCount: report.nackCount ?? 0,
      pliCount: report.pliCount ?? 0,
      audioEnergy: report.totalAudioEnergy ?? 0,
      concealedSamples: report.concealedSamples ?? 0,
    };
  }

  #sent(report, codec, remote) {
    const delta = this.#delta(report, report.bytesSent, report.packetsSent, 0);
    return {
      mid: report.mid ?? null,
      rid: report.rid ?? null,
      kind: report.kind,
      codec,
      width: report.frameWidth ?? 0,
      height: report.frameHeight ?? 0,
      frameRate: report.framesPerSecond ?? 0,
      bitrate: delta.bitrate,
      loss: 100 * (remote?.fractionLost ?? 0),
      framesEncoded: report.framesEncoded ?? 0,
      packetsSent: report.packetsSent ?? 0,
      bytesSent: report.bytesSent ?? 0,
      limitation: report.qualityLimitationReason ?? null,
    };
  }

  #delta(report, bytes = 0, packets = 0, lost = 0) {
    const now = { time: report.timestamp, bytes, packets, lost };
    const before = this.#before.get(report.id) ?? now;
    this.#before.set(report.id, now);
    const seconds = (now.time - before.time) / 1000;
    return {
      bitrate: seconds > 0 ? (8 * (bytes - before.bytes)) / seconds : 0,
      packets: packets - before.packets,
      lost: lost - before.lost,
    };
  }
}
