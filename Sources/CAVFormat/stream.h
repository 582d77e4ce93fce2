#pragma once
#include "shim.h"
#include <libavutil/channel_layout.h>
#include <libavutil/imgutils.h>
#include <libswscale/swscale.h>
#include <time.h>

// Decoders, encoders and RTMP output for live streams.

/// Maximum number of pixels in a decoded picture: slightly more than 4K. A larger picture is
/// refused before memory is allocated for it.
enum { AV_MAX_PIXELS = 4096 * 2304 };

/// Decoder of one track, which keeps the last frame.
struct av_decoder {
    AVCodecContext *context;
    AVPacket *packet;
    AVFrame *frame;
    AVFrame *last;
    AVFrame *scaled;
    struct SwsContext *scaler;
};

static inline void av_decoder_destroy(struct av_decoder *decoder) {
    if (decoder == NULL) return;
    avcodec_free_context(&decoder->context);
    av_packet_free(&decoder->packet);
    av_frame_free(&decoder->frame);
    av_frame_free(&decoder->last);
    av_frame_free(&decoder->scaled);
    sws_freeContext(decoder->scaler);
    free(decoder);
}

/// Creates a decoder; returns NULL if libavcodec has none for the track or refuses it.
static inline struct av_decoder *av_decoder_create(const struct av_track *track) {
    av_log_set_level(AV_LOG_QUIET);
    struct av_decoder *decoder = (struct av_decoder *)calloc(1, sizeof *decoder);
    if (decoder == NULL) return NULL;
    decoder->packet = av_packet_alloc();
    decoder->frame = av_frame_alloc();
    decoder->last = av_frame_alloc();
    decoder->scaled = av_frame_alloc();
    AVCodecParameters *parameters = avcodec_parameters_alloc();
    int failed = decoder->packet == NULL || decoder->frame == NULL || decoder->last == NULL ||
                 decoder->scaled == NULL || parameters == NULL ||
                 av_muxer_describe(parameters, track) < 0;
    const AVCodec *codec = failed ? NULL : avcodec_find_decoder(parameters->codec_id);
    if (codec != NULL) decoder->context = avcodec_alloc_context3(codec);
    failed = failed || decoder->context == NULL ||
             avcodec_parameters_to_context(decoder->context, parameters) < 0;
    if (!failed) {
        decoder->context->thread_count = 1;
        decoder->context->max_pixels = AV_MAX_PIXELS;
        decoder->context->flags |= AV_CODEC_FLAG_LOW_DELAY;
        failed = avcodec_open2(decoder->context, codec, NULL) < 0;
    }
    avcodec_parameters_free(&parameters);
    if (!failed) return decoder;
    av_decoder_destroy(decoder);
    return NULL;
}

/// Decodes one frame; returns 1 if there is new output.
static inline int av_decoder_decode(struct av_decoder *decoder, const uint8_t *bytes, int count) {
    if (av_new_packet(decoder->packet, count) < 0) return 0;
    memcpy(decoder->packet->data, bytes, (size_t)count);
    int result = avcodec_send_packet(decoder->context, decoder->packet);
    av_packet_unref(decoder->packet);
    if (result < 0) return 0;
    int found = 0;
    while (avcodec_receive_frame(decoder->context, decoder->frame) >= 0) {
        av_frame_unref(decoder->last);
        av_frame_move_ref(decoder->last, decoder->frame);
        found = 1;
    }
    return found;
}

/// Scales the last picture to fit into `width` by `height`, both even, with black borders. The
/// planes of 4:2:0 follow one another. Returns 0 if there is no picture.
static inline int av_decoder_picture(struct av_decoder *decoder, int width, int height,
                                     uint8_t *picture) {
    const AVFrame *source = decoder->last;
    if (source->width <= 0 || source->height <= 0 || source->data[0] == NULL) return 0;
    int64_t fitted_width = width;
    int64_t fitted_height = (int64_t)width * source->height / source->width;
    if (fitted_height > height) {
        fitted_height = height;
        fitted_width = (int64_t)height * source->width / source->height;
    }
    int w = fitted_width < 16 ? 16 : (int)fitted_width / 2 * 2;
    int h = fitted_height < 16 ? 16 : (int)fitted_height / 2 * 2;
    if (w > width || h > height) return 0;

    // libswscale may write past the end of a line, so it gets a frame of its own with room for
    // that.
    AVFrame *scaled = decoder->scaled;
    if (scaled->width != w || scaled->height != h) {
        av_frame_unref(scaled);
        scaled->format = AV_PIX_FMT_YUV420P;
        scaled->width = w;
        scaled->height = h;
        if (av_frame_get_buffer(scaled, 0) < 0) {
            av_frame_unref(scaled);
            return 0;
        }
    }
    decoder->scaler = sws_getCachedContext(decoder->scaler, source->width, source->height,
                                           (enum AVPixelFormat)source->format, w, h,
                                           AV_PIX_FMT_YUV420P, SWS_BILINEAR, NULL, NULL, NULL);
    if (decoder->scaler == NULL) return 0;
    if (sws_scale(decoder->scaler, (const uint8_t *const *)source->data, source->linesize, 0,
                  source->height, scaled->data, scaled->linesize) <= 0) {
        return 0;
    }
    size_t luma = (size_t)width * height;
    memset(picture, 16, luma);
    memset(picture + luma, 128, luma / 2);
    int x = (width - w) / 4 * 2, y = (height - h) / 4 * 2;
    uint8_t *chroma = picture + luma + (size_t)(y / 2) * (width / 2) + x / 2;
    av_image_copy_plane(picture + (size_t)y * width + x, width, scaled->data[0],
                        scaled->linesize[0], w, h);
    av_image_copy_plane(chroma, width / 2, scaled->data[1], scaled->linesize[1], w / 2, h / 2);
    av_image_copy_plane(chroma + luma / 4, width / 2, scaled->data[2], scaled->linesize[2], w / 2,
                        h / 2);
    return 1;
}

/// Copies the last audio frame as interleaved left and right samples; returns the number of pairs.
static inline int av_decoder_audio(const struct av_decoder *decoder, float *samples,
                                   int capacity) {
    const AVFrame *source = decoder->last;
    int count = source->nb_samples < capacity ? source->nb_samples : capacity;
    if (source->format != AV_SAMPLE_FMT_FLTP || source->sample_rate != 48000) return 0;
#if LIBAVCODEC_VERSION_INT >= AV_VERSION_INT(59, 24, 100)
    int channels = source->ch_layout.nb_channels;
#else
    int channels = source->channels;
#endif
    if (channels < 1) return 0;
    const float *left = (const float *)source->data[0];
    const float *right = channels > 1 ? (const float *)source->data[1] : left;
    for (int index = 0; index < count; index++) {
        samples[2 * index] = left[index];
        samples[2 * index + 1] = right[index];
    }
    return count;
}

/// Copies a picture of `width` by `height` into a larger one, with its corner at `x` and `y`; all
/// values are even.
static inline void av_picture_put(uint8_t *canvas, int canvas_width, int canvas_height, int x,
                                  int y, const uint8_t *picture, int width, int height) {
    size_t canvas_luma = (size_t)canvas_width * canvas_height, luma = (size_t)width * height;
    uint8_t *chroma =
        canvas + canvas_luma + (size_t)(y / 2) * (canvas_width / 2) + x / 2;
    av_image_copy_plane(canvas + (size_t)y * canvas_width + x, canvas_width, picture, width, width,
                        height);
    av_image_copy_plane(chroma, canvas_width / 2, picture + luma, width / 2, width / 2,
                        height / 2);
    av_image_copy_plane(chroma + canvas_luma / 4, canvas_width / 2, picture + luma + luma / 4,
                        width / 2, width / 2, height / 2);
}

struct av_encoder {
    AVCodecContext *context;
    AVPacket *packet;
    AVFrame *frame;
};

/// Encoded packet, valid until the encoder is called again.
struct av_encoded {
    const uint8_t *bytes;
    int count;
    int keyframe;
    /// Time in pictures, or samples, since the beginning.
    int64_t time;
};

static inline void av_encoder_destroy(struct av_encoder *encoder) {
    if (encoder == NULL) return;
    avcodec_free_context(&encoder->context);
    av_packet_free(&encoder->packet);
    av_frame_free(&encoder->frame);
    free(encoder);
}

static inline struct av_encoder *av_encoder_alloc(const AVCodec *codec) {
    av_log_set_level(AV_LOG_QUIET);
    struct av_encoder *encoder = (struct av_encoder *)calloc(1, sizeof *encoder);
    if (encoder == NULL) return NULL;
    encoder->packet = av_packet_alloc();
    encoder->frame = av_frame_alloc();
    if (codec != NULL) encoder->context = avcodec_alloc_context3(codec);
    if (encoder->packet != NULL && encoder->frame != NULL && encoder->context != NULL) {
        // Parameter sets are sent to the server only once.
        encoder->context->flags |= AV_CODEC_FLAG_GLOBAL_HEADER;
        return encoder;
    }
    av_encoder_destroy(encoder);
    return NULL;
}

static inline struct av_encoder *av_encoder_open(struct av_encoder *encoder) {
    int failed = avcodec_open2(encoder->context, encoder->context->codec, NULL) < 0;
    if (!failed) failed = av_frame_get_buffer(encoder->frame, 0) < 0;
    if (!failed) return encoder;
    av_encoder_destroy(encoder);
    return NULL;
}

/// Creates an H.264 encoder without delay and with a keyframe every two seconds; returns NULL
/// without libx264.
static inline struct av_encoder *av_picture_encoder_create(int width, int height, int rate,
                                                           int64_t bitrate, int threads) {
    struct av_encoder *encoder = av_encoder_alloc(avcodec_find_encoder_by_name("libx264"));
    if (encoder == NULL) return NULL;
    AVCodecContext *context = encoder->context;
    context->width = width;
    context->height = height;
    context->pix_fmt = AV_PIX_FMT_YUV420P;
    context->time_base = (AVRational){1, rate};
    context->framerate = (AVRational){rate, 1};
    context->bit_rate = bitrate;
    context->rc_max_rate = bitrate;
    context->rc_buffer_size = (int)bitrate;
    context->gop_size = 2 * rate;
    context->max_b_frames = 0;
    context->thread_count = threads;
    av_opt_set(context->priv_data, "preset", "veryfast", 0);
    av_opt_set(context->priv_data, "tune", "zerolatency", 0);
    av_opt_set(context->priv_data, "profile", "main", 0);
    av_opt_set(context->priv_data, "forced-idr", "1", 0);
    encoder->frame->format = AV_PIX_FMT_YUV420P;
    encoder->frame->width = width;
    encoder->frame->height = height;
    return av_encoder_open(encoder);
}

/// Creates an AAC encoder: two channels at 48 kHz, 1024 samples a packet.
static inline struct av_encoder *av_audio_encoder_create(int64_t bitrate) {
    struct av_encoder *encoder = av_encoder_alloc(avcodec_find_encoder(AV_CODEC_ID_AAC));
    if (encoder == NULL) return NULL;
    AVCodecContext *context = encoder->context;
    context->sample_fmt = AV_SAMPLE_FMT_FLTP;
    context->sample_rate = 48000;
    context->time_base = (AVRational){1, 48000};
    context->bit_rate = bitrate;
    encoder->frame->format = AV_SAMPLE_FMT_FLTP;
    encoder->frame->sample_rate = 48000;
    encoder->frame->nb_samples = 1024;
#if LIBAVCODEC_VERSION_INT >= AV_VERSION_INT(59, 24, 100)
    av_channel_layout_default(&context->ch_layout, 2);
    av_channel_layout_default(&encoder->frame->ch_layout, 2);
#else
    context->channels = 2;
    context->channel_layout = 3;
    encoder->frame->channels = 2;
    encoder->frame->channel_layout = 3;
#endif
    return av_encoder_open(encoder);
}

static inline int av_encoder_send(struct av_encoder *encoder) {
    return avcodec_send_frame(encoder->context, encoder->frame);
}

/// Encodes a picture of the encoder's size; its planes follow one another.
static inline int av_encoder_picture(struct av_encoder *encoder, const uint8_t *picture,
                                     int64_t time, int keyframe) {
    AVFrame *frame = encoder->frame;
    if (av_frame_make_writable(frame) < 0) return AVERROR(ENOMEM);
    int width = frame->width, height = frame->height;
    size_t luma = (size_t)width * height;
    av_image_copy_plane(frame->data[0], frame->linesize[0], picture, width, width, height);
    av_image_copy_plane(frame->data[1], frame->linesize[1], picture + luma, width / 2, width / 2,
                        height / 2);
    av_image_copy_plane(frame->data[2], frame->linesize[2], picture + luma + luma / 4, width / 2,
                        width / 2, height / 2);
    frame->pts = time;
    frame->pict_type = keyframe ? AV_PICTURE_TYPE_I : AV_PICTURE_TYPE_NONE;
    return av_encoder_send(encoder);
}

/// Encodes 1024 left samples followed by as many right ones.
static inline int av_encoder_audio(struct av_encoder *encoder, const float *samples,
                                   int64_t time) {
    AVFrame *frame = encoder->frame;
    if (av_frame_make_writable(frame) < 0) return AVERROR(ENOMEM);
    memcpy(frame->data[0], samples, 1024 * sizeof(float));
    memcpy(frame->data[1], samples + 1024, 1024 * sizeof(float));
    frame->pts = time;
    return av_encoder_send(encoder);
}

/// Takes the next packet; returns 0 if there is none.
static inline int av_encoder_next(struct av_encoder *encoder, struct av_encoded *encoded) {
    av_packet_unref(encoder->packet);
    if (avcodec_receive_packet(encoder->context, encoder->packet) < 0) return 0;
    encoded->bytes = encoder->packet->data;
    encoded->count = encoder->packet->size;
    encoded->keyframe = encoder->packet->flags & AV_PKT_FLAG_KEY ? 1 : 0;
    encoded->time = encoder->packet->pts;
    return 1;
}

/// Connection to a server that accepts FLV over RTMP.
struct av_output {
    AVFormatContext *context;
    AVPacket *packet;
    /// Deadline on the monotonic clock, in nanoseconds; an operation that takes longer is aborted.
    int64_t deadline;
};

static inline int64_t av_output_now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

static inline int av_output_is_late(void *opaque) {
    return av_output_now() > ((struct av_output *)opaque)->deadline;
}

static inline void av_output_allow(struct av_output *output, int milliseconds) {
    output->deadline = av_output_now() + (int64_t)milliseconds * 1000000;
}

static inline void av_output_destroy(struct av_output *output) {
    if (output == NULL) return;
    if (output->context != NULL) {
        avio_closep(&output->context->pb);
        avformat_free_context(output->context);
    }
    av_packet_free(&output->packet);
    free(output);
}

static inline int av_output_add_stream(struct av_output *output, const struct av_encoder *encoder) {
    AVStream *stream = avformat_new_stream(output->context, NULL);
    if (stream == NULL) return AVERROR(ENOMEM);
    stream->time_base = (AVRational){1, 1000};
    return avcodec_parameters_from_context(stream->codecpar, encoder->context);
}

/// Connects to a server within at most `milliseconds`; `error` holds the reason for a failure.
/// `authority` is a file of trusted certificates; if empty, those of the system are trusted.
static inline struct av_output *av_output_create(const char *url, const char *authority,
                                                 const struct av_encoder *picture,
                                                 const struct av_encoder *sound, int milliseconds,
                                                 int *error) {
    av_log_set_level(AV_LOG_QUIET);
    *error = AVERROR(ENOMEM);
    struct av_output *output = (struct av_output *)calloc(1, sizeof *output);
    if (output == NULL) return NULL;
    av_output_allow(output, milliseconds);
    output->packet = av_packet_alloc();
    int result = output->packet == NULL ? AVERROR(ENOMEM) : 0;
    if (result >= 0) result = avformat_alloc_output_context2(&output->context, NULL, "flv", NULL);
    if (result >= 0) {
        output->context->interrupt_callback.callback = av_output_is_late;
        output->context->interrupt_callback.opaque = output;
        output->context->flags |= AVFMT_FLAG_FLUSH_PACKETS;
        result = av_output_add_stream(output, picture);
    }
    if (result >= 0) result = av_output_add_stream(output, sound);
    if (result >= 0) {
        AVDictionary *options = NULL;
        // For rtmps:// only: the server's certificate is verified.
        av_dict_set(&options, "tls_verify", "1", 0);
        if (authority[0] != 0) av_dict_set(&options, "ca_file", authority, 0);
        result = avio_open2(&output->context->pb, url, AVIO_FLAG_WRITE,
                            &output->context->interrupt_callback, &options);
        av_dict_free(&options);
    }
    if (result >= 0) {
        AVDictionary *options = NULL;
        av_dict_set(&options, "flvflags", "no_duration_filesize", 0);
        result = avformat_write_header(output->context, &options);
        av_dict_free(&options);
    }
    *error = result;
    if (result >= 0) return output;
    av_output_destroy(output);
    return NULL;
}

/// Sends one packet; `stream` is 0 for pictures and 1 for audio. Returns a negative value on
/// failure.
static inline int av_output_write(struct av_output *output, int stream, const uint8_t *bytes,
                                  int count, int64_t time, int keyframe, int milliseconds) {
    av_output_allow(output, milliseconds);
    if (av_new_packet(output->packet, count) < 0) return AVERROR(ENOMEM);
    memcpy(output->packet->data, bytes, (size_t)count);
    output->packet->stream_index = stream;
    output->packet->pts = time;
    output->packet->dts = time;
    output->packet->flags = keyframe ? AV_PKT_FLAG_KEY : 0;
    int result = av_write_frame(output->context, output->packet);
    av_packet_unref(output->packet);
    if (result >= 0 && output->context->pb->error < 0) result = output->context->pb->error;
    return result;
}

/// Writes the trailer, which ends the stream.
static inline void av_output_finish(struct av_output *output, int milliseconds) {
    av_output_allow(output, milliseconds);
    av_write_trailer(output->context);
}

/// Returns whether the server is absent or does not answer.
static inline int av_error_is_unreachable(int error) {
    return error == AVERROR(ECONNREFUSED) || error == AVERROR(ETIMEDOUT) ||
           error == AVERROR(EHOSTUNREACH) || error == AVERROR(ENETUNREACH) ||
           error == AVERROR(ENOENT) || error == AVERROR(EADDRNOTAVAIL);
}

/// Returns whether an operation exceeded its deadline.
static inline int av_error_is_late(int error) { return error == AVERROR_EXIT; }
