"""A GStreamer `webrtcbin` peer that speaks JSON lines: {"id", "do", …} → {"id", "result"|"error"}.

Run by Debian's python3, which has the `gi` bindings; `gst.py` is the tests' side.
"""

import array
import json
import sys
import threading
import time
from pathlib import Path

import gi

gi.require_version("Gst", "1.0")
gi.require_version("GstApp", "1.0")
gi.require_version("GstSdp", "1.0")
gi.require_version("GstVideo", "1.0")
gi.require_version("GstWebRTC", "1.0")
from gi.repository import GLib, Gst, GstApp, GstSdp, GstVideo, GstWebRTC  # noqa: E402, F401

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from harness.media import Picture, ToneMeter, read_picture  # noqa: E402

Gst.init(None)

RATE = 48000
TRANSPORT_CC = (
    "rtcp-fb-transport-cc=(boolean)true,"
    "extmap-3=(string)http://www.ietf.org/id/draft-holmer-rmcat-transport-wide-cc-extensions-01"
)
MID = "extmap-1=(string)urn:ietf:params:rtp-hdrext:sdes:mid"
FEEDBACK = (
    "rtcp-fb-nack=(boolean)true,rtcp-fb-nack-pli=(boolean)true,rtcp-fb-ccm-fir=(boolean)true,"
    f"{TRANSPORT_CC},{MID}"
)
AUDIO = f"application/x-rtp,media=audio,encoding-name=OPUS,clock-rate=48000,payload=96,{MID}"
AUDIO += f",encoding-params=(string)2,{TRANSPORT_CC}"

PROFILE = "packetization-mode=(string)1,profile-level-id=(string)42e01f"


def video_caps(codec: str, payload: int) -> str:
    profile = f",{PROFILE},level-asymmetry-allowed=(string)1" if codec == "H264" else ""
    return (
        f"application/x-rtp,media=video,encoding-name={codec},clock-rate=90000,"
        f"payload={payload},{FEEDBACK}{profile}"
    )


# Repeats the payload types of the caps: an offer made before caps have been negotiated would have
# the payloaders' default, which is the same for all.
ENCODERS = {
    "VP8": "vp8enc deadline=1 cpu-used=8 target-bitrate=800000 end-usage=cbr keyframe-max-dist=2000"
    " ! rtpvp8pay pt=97 picture-id-mode=15-bit mtu=1200",
    "H264": "openh264enc bitrate=800000 gop-size=2000 complexity=low"
    " ! video/x-h264,profile=constrained-baseline"
    " ! rtph264pay pt=97 aggregate-mode=zero-latency config-interval=-1 mtu=1200",
    "VP9": "vp9enc deadline=1 cpu-used=8 target-bitrate=800000 end-usage=cbr keyframe-max-dist=2000"
    " ! rtpvp9pay pt=97 picture-id-mode=15-bit mtu=1200",
}
DECODERS = {
    "VP8": "rtpvp8depay request-keyframe=true wait-for-keyframe=true ! vp8dec",
    "VP9": "rtpvp9depay request-keyframe=true wait-for-keyframe=true ! vp9dec",
    "H264": "rtph264depay request-keyframe=true wait-for-keyframe=true ! h264parse ! avdec_h264",
}


class Helper:
    def __init__(self):
        self.pipeline = Gst.Pipeline.new()
        self.webrtc = Gst.ElementFactory.make("webrtcbin")
        self.webrtc.set_property("bundle-policy", GstWebRTC.WebRTCBundlePolicy.MAX_BUNDLE)
        self.webrtc.set_property("latency", 100)
        # libnice omits loopback by default. The agent is returned as a floating reference, so
        # releasing it would end it.
        self.ice = self.webrtc.get_property("ice-agent")
        self.ice.emit("add-local-ip-address", "127.0.0.1")
        self.pipeline.add(self.webrtc)
        self.webrtc.connect("pad-added", self.pad_added)
        self.frames: dict[str, list] = {}
        self.sounds: dict[str, list] = {}
        self.errors: list[str] = []
        #: The m-line and the kind of received media, by SSRC.
        self.received: dict[int, dict] = {}
        self.counter = 0
        #: Pads of `webrtcbin` that media is fed into.
        self.sinks: list[Gst.Pad] = []
        bus = self.pipeline.get_bus()
        bus.add_signal_watch()
        bus.connect("message", self.message)
        self.pipeline.set_state(Gst.State.PLAYING)

    def message(self, _, message):
        if message.type in (Gst.MessageType.ERROR, Gst.MessageType.WARNING):
            parse = (
                message.parse_error
                if message.type == Gst.MessageType.ERROR
                else (message.parse_warning)
            )
            self.errors.append(f"{message.src.get_name()}: {parse()[0].message}")

    # Sources.

    def publish(self, hue, tone, codec, audio, video, width, height, fps):
        if audio:
            self.feed(
                f"audiotestsrc is-live=true wave=sine freq={tone} volume=0.5"
                f" ! audio/x-raw,rate={RATE},channels=1 ! opusenc ! rtpopuspay pt=96",
                AUDIO,
            )
        if video:
            codec = codec or "VP8"
            source = self.feed(
                "appsrc name=source format=time is-live=true do-timestamp=true"
                f" caps=video/x-raw,format=I420,width={width},height={height},framerate={fps}/1"
                f" ! queue ! {ENCODERS[codec]}",
                video_caps(codec, 97),
            ).get_by_name("source")
            picture = Picture(hue, width, height)
            GLib.timeout_add(1000 // fps, self.draw, source, picture)

    def feed(self, description, caps):
        chain = Gst.parse_bin_from_description(
            f"{description} ! capsfilter name=caps ! queue name=last", False
        )
        # Set after parsing, because gst-launch's grammar does not allow URIs in caps.
        chain.get_by_name("caps").set_property("caps", Gst.Caps.from_string(caps))
        chain.add_pad(Gst.GhostPad.new("src", chain.get_by_name("last").get_static_pad("src")))
        self.pipeline.add(chain)
        sink = self.webrtc.request_pad_simple(f"sink_{len(self.sinks)}")
        self.sinks.append(sink)
        transceiver = sink.get_property("transceiver")
        transceiver.set_property("direction", GstWebRTC.WebRTCRTPTransceiverDirection.SENDONLY)
        if "media=video" in caps:
            transceiver.set_property("do-nack", True)
        chain.get_static_pad("src").link(sink)
        chain.sync_state_with_parent()
        return chain

    def draw(self, source, picture):
        source.push_buffer(Gst.Buffer.new_wrapped(b"".join(picture.planes(self.counter))))
        self.counter += 1
        return True

    # Slots.

    def receive(self, slots):
        direction = GstWebRTC.WebRTCRTPTransceiverDirection.RECVONLY
        for _ in range(slots):
            self.webrtc.emit("add-transceiver", direction, Gst.Caps.from_string(AUDIO))
        video = ";".join(
            video_caps(codec, 97 + index) for index, codec in enumerate(("VP8", "H264", "VP9"))
        )
        for _ in range(slots):
            transceiver = self.webrtc.emit(
                "add-transceiver", direction, Gst.Caps.from_string(video)
            )
            transceiver.set_property("do-nack", True)

    def pad_added(self, _, pad):
        if pad.get_direction() != Gst.PadDirection.SRC:
            return
        mid = pad.get_property("transceiver").get_property("mid")
        caps = (pad.get_current_caps() or pad.query_caps()).get_structure(0)
        kind = caps.get_string("media")
        self.received[caps.get_uint("ssrc").value] = {"mid": mid, "kind": kind}
        if kind == "video":
            decoder = DECODERS[caps.get_string("encoding-name")]
            chain = f"{decoder} ! videoconvert ! video/x-raw,format=I420"
            read = self.read_frame
        else:
            chain = (
                "rtpopusdepay ! opusdec ! audioconvert ! audioresample"
                f" ! audio/x-raw,format=S16LE,rate={RATE},channels=1"
            )
            read = self.read_sound
        chain = Gst.parse_bin_from_description(
            f"queue ! {chain} ! appsink name=sink emit-signals=true sync=false", True
        )
        chain.get_by_name("sink").connect("new-sample", read, mid, ToneMeter(RATE))
        self.pipeline.add(chain)
        chain.sync_state_with_parent()
        pad.link(chain.get_static_pad("sink"))

    def read_frame(self, sink, mid, _):
        sample = sink.emit("pull-sample")
        info = GstVideo.VideoInfo.new_from_caps(sample.get_caps())
        buffer = sample.get_buffer()
        data = buffer.extract_dup(0, buffer.get_size())
        offsets, strides = info.offset, info.stride
        frame = read_picture(
            time.time(),
            info.width,
            info.height,
            data,
            (strides[0], strides[1]),
            data[offsets[1] : offsets[2]],
            data[offsets[2] :],
        )
        self.frames.setdefault(mid, []).append(frame)
        return Gst.FlowReturn.OK

    def read_sound(self, sink, mid, meter):
        buffer = sink.emit("pull-sample").get_buffer()
        samples = array.array("h", buffer.extract_dup(0, buffer.get_size()))
        self.sounds.setdefault(mid, []).extend(meter.feed(time.time(), samples))
        return Gst.FlowReturn.OK

    # Negotiation; each method answers by calling `done`.

    def offer(self, done):
        """Makes an offer once all pads have caps.

        For an offer that is made sooner, webrtcbin 1.22 does not know the payload types of the
        other m-lines, and may give one of theirs to RTX (RFC 9143 §9.1 forbids that in a bundle).
        """

        def check():
            if any(sink.get_current_caps() is None for sink in self.sinks):
                return True
            self.create("offer", done)
            return False

        GLib.timeout_add(10, check)

    def create(self, kind, done):
        def created(promise):
            reply = promise.get_reply()
            if promise.wait() != GstWebRTC_REPLIED or not reply.has_field(kind):
                done(error=f"create-{kind}: {reply.to_string() if reply else 'no reply'}")
                return
            description = reply.get_value(kind)
            self.webrtc.emit("set-local-description", description, Gst.Promise.new())
            self.gathered(done)

        promise = Gst.Promise.new_with_change_func(created)
        self.webrtc.emit(f"create-{kind}", None, promise)

    def gathered(self, done):
        def check():
            state = self.webrtc.get_property("ice-gathering-state")
            description = self.webrtc.get_property("local-description")
            if state != GstWebRTC.WebRTCICEGatheringState.COMPLETE or description is None:
                return True
            done(result=description.sdp.as_text())
            return False

        GLib.timeout_add(10, check)

    def set_remote(self, kind, sdp, then):
        _, message = GstSdp.SDPMessage.new_from_text(sdp)
        description = GstWebRTC.WebRTCSessionDescription.new(kind, message)
        promise = Gst.Promise.new_with_change_func(lambda promise: then(promise.get_reply()))
        self.webrtc.emit("set-remote-description", description, promise)

    def accept(self, sdp, done):
        self.set_remote(
            GstWebRTC.WebRTCSDPType.ANSWER,
            sdp,
            lambda reply: (
                done(error=reply.to_string())
                if reply and reply.has_field("error")
                else done(result=None)
            ),
        )

    def answer(self, sdp, done):
        self.set_remote(
            GstWebRTC.WebRTCSDPType.OFFER, sdp, lambda _: GLib.idle_add(self.create, "answer", done)
        )

    def stats(self, done):
        def got(promise):
            flows = {"in": [], "out": []}

            def visit(_, value):
                if isinstance(value, Gst.Structure):
                    kind = value.get_name()
                    for name, key in (("inbound-rtp", "in"), ("outbound-rtp", "out")):
                        if kind == f"application/x-{name}" or name in value.to_string()[:60]:
                            entry = plain(value)
                            # webrtcbin reports no mid, and takes every kind for audio.
                            flows[key].append(entry | self.received.get(entry["ssrc"], {}))
                return True

            promise.get_reply().foreach(visit)
            state = self.webrtc.get_property("connection-state").value_nick
            done(result={"connection": state, "errors": self.errors, **flows})

        self.webrtc.emit("get-stats", None, Gst.Promise.new_with_change_func(got))

    # Requests.

    def handle(self, request):
        number = request.pop("id")

        def done(**outcome):
            print(json.dumps({"id": number, **outcome}), flush=True)

        try:
            match request.pop("do"):
                case "publish":
                    done(result=self.publish(**request))
                case "receive":
                    done(result=self.receive(**request))
                case "offer":
                    self.offer(done)
                case "accept":
                    self.accept(request["sdp"], done)
                case "answer":
                    self.answer(request["sdp"], done)
                case "frames":
                    frames = self.frames.get(request["mid"], [])
                    done(result=[vars(one) for one in frames if one.time >= request["since"]])
                case "sounds":
                    sounds = self.sounds.get(request["mid"], [])
                    done(result=[vars(one) for one in sounds if one.time >= request["since"]])
                case "stats":
                    self.stats(done)
        except Exception as error:  # The tests' side reports it.
            done(error=repr(error))


def plain(structure):
    """Converts a statistics structure to the names of W3C webrtc-stats; omits what JSON lacks."""
    values = {}
    for index in range(structure.n_fields()):
        name = structure.nth_field_name(index)
        try:
            value = structure.get_value(name)
        except TypeError:
            continue
        if isinstance(value, (int, float, str, bool)):
            first, *others = name.split("-")
            values[first + "".join(map(str.capitalize, others))] = value
    return values


GstWebRTC_REPLIED = Gst.PromiseResult.REPLIED


def main():
    helper = Helper()
    loop = GLib.MainLoop()

    def read():
        for line in sys.stdin:
            GLib.idle_add(helper.handle, json.loads(line))
        GLib.idle_add(loop.quit)

    threading.Thread(target=read, daemon=True).start()
    loop.run()


main()
