#pragma once
#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
#include <libavutil/mem.h>
#include <libavutil/opt.h>
#include <string.h>

// libavformat's structures change between versions, so only this file accesses their members.

enum av_codec { AV_OPUS = 0, AV_VP8 = 1, AV_VP9 = 2, AV_H264 = 3, AV_AV1 = 4 };

/// Track of a file, which has exactly one.
struct av_track {
    enum av_codec codec;
    /// Size of video, in pixels.
    int width;
    int height;
    const uint8_t *extradata;
    int extradata_size;
};

/// Header of a run of bytes in the log: their offset in the file and their number.
struct av_run {
    int64_t offset;
    int64_t count;
};

/// Muxer whose output is kept in memory, as a log of runs, until the caller takes it.
struct av_muxer {
    AVFormatContext *context;
    AVIOContext *io;
    AVPacket *packet;
    uint8_t *log;
    size_t used;
    size_t room;
    /// Offset of the last run in the log; SIZE_MAX if there is none.
    size_t last;
    int64_t position;
    int64_t end;
};

static inline int av_muxer_write_bytes(struct av_muxer *muxer, const uint8_t *bytes, int count) {
    if (count <= 0) return 0;
    size_t needed = muxer->used + sizeof(struct av_run) + (size_t)count;
    if (needed > muxer->room) {
        size_t room = needed * 2;
        uint8_t *log = (uint8_t *)realloc(muxer->log, room);
        if (log == NULL) return AVERROR(ENOMEM);
        muxer->log = log;
        muxer->room = room;
    }
    struct av_run run = {muxer->position, 0};
    if (muxer->last != SIZE_MAX) memcpy(&run, muxer->log + muxer->last, sizeof run);
    if (muxer->last == SIZE_MAX || run.offset + run.count != muxer->position) {
        muxer->last = muxer->used;
        muxer->used += sizeof run;
        run.offset = muxer->position;
        run.count = 0;
    }
    memcpy(muxer->log + muxer->used, bytes, (size_t)count);
    muxer->used += (size_t)count;
    run.count += count;
    memcpy(muxer->log + muxer->last, &run, sizeof run);
    muxer->position += count;
    if (muxer->position > muxer->end) muxer->end = muxer->position;
    return count;
}

#if LIBAVFORMAT_VERSION_MAJOR >= 61
static inline int av_muxer_write(void *opaque, const uint8_t *bytes, int count) {
#else
static inline int av_muxer_write(void *opaque, uint8_t *bytes, int count) {
#endif
    return av_muxer_write_bytes((struct av_muxer *)opaque, bytes, count);
}

static inline int64_t av_muxer_seek(void *opaque, int64_t offset, int whence) {
    struct av_muxer *muxer = (struct av_muxer *)opaque;
    switch (whence & ~AVSEEK_FORCE) {
    case AVSEEK_SIZE: return muxer->end;
    case SEEK_SET: break;
    case SEEK_CUR: offset += muxer->position; break;
    case SEEK_END: offset += muxer->end; break;
    default: return AVERROR(EINVAL);
    }
    if (offset < 0) return AVERROR(EINVAL);
    muxer->position = offset;
    return offset;
}

static inline void av_muxer_destroy(struct av_muxer *muxer) {
    if (muxer == NULL) return;
    if (muxer->context != NULL) {
        muxer->context->pb = NULL;
        avformat_free_context(muxer->context);
    }
    if (muxer->io != NULL) {
        av_freep(&muxer->io->buffer);
        avio_context_free(&muxer->io);
    }
    av_packet_free(&muxer->packet);
    free(muxer->log);
    free(muxer);
}

static inline int av_muxer_describe(AVCodecParameters *parameters, const struct av_track *track) {
    static const enum AVCodecID ids[] = {
        AV_CODEC_ID_OPUS, AV_CODEC_ID_VP8, AV_CODEC_ID_VP9, AV_CODEC_ID_H264, AV_CODEC_ID_AV1,
    };
    parameters->codec_id = ids[track->codec];
    if (track->codec == AV_OPUS) {
        parameters->codec_type = AVMEDIA_TYPE_AUDIO;
        parameters->sample_rate = 48000;
        parameters->frame_size = 960;
        // Lookahead of libopus (RFC 7845 §4.2): players drop this many samples at the beginning.
        parameters->initial_padding = 312;
        parameters->seek_preroll = 3840;
#if LIBAVCODEC_VERSION_INT >= AV_VERSION_INT(59, 24, 100)
        av_channel_layout_default(&parameters->ch_layout, 2);
#else
        parameters->channels = 2;
        parameters->channel_layout = 3;
#endif
    } else {
        parameters->codec_type = AVMEDIA_TYPE_VIDEO;
        parameters->width = track->width;
        parameters->height = track->height;
    }
    if (track->extradata_size <= 0) return 0;
    parameters->extradata =
        (uint8_t *)av_mallocz((size_t)track->extradata_size + AV_INPUT_BUFFER_PADDING_SIZE);
    if (parameters->extradata == NULL) return AVERROR(ENOMEM);
    memcpy(parameters->extradata, track->extradata, (size_t)track->extradata_size);
    parameters->extradata_size = track->extradata_size;
    return 0;
}

/// Creates a muxer for a file of one track; returns NULL if libavformat refuses it.
static inline struct av_muxer *av_muxer_create(const char *format, const struct av_track *track) {
    const int buffer_size = 1 << 16;
    // Errors are reported by return values; libav would write to standard error.
    av_log_set_level(AV_LOG_QUIET);
    struct av_muxer *muxer = (struct av_muxer *)calloc(1, sizeof *muxer);
    if (muxer == NULL) return NULL;
    muxer->last = SIZE_MAX;
    muxer->packet = av_packet_alloc();
    uint8_t *buffer = (uint8_t *)av_malloc((size_t)buffer_size);
    if (buffer != NULL) {
        muxer->io = avio_alloc_context(buffer, buffer_size, 1, muxer, NULL, av_muxer_write,
                                       av_muxer_seek);
        if (muxer->io == NULL) av_free(buffer);
    }
    int failed = muxer->packet == NULL || muxer->io == NULL;
    if (!failed) {
        failed = avformat_alloc_output_context2(&muxer->context, NULL, format, NULL) < 0;
    }
    AVStream *stream = failed ? NULL : avformat_new_stream(muxer->context, NULL);
    if (stream != NULL) failed = av_muxer_describe(stream->codecpar, track) < 0;
    if (!failed && stream != NULL) {
        stream->time_base = (AVRational){1, 1000};
        muxer->context->pb = muxer->io;
        muxer->context->flags |= AVFMT_FLAG_CUSTOM_IO;
        av_opt_set(muxer->context->priv_data, "write_crc32", "0", 0);
        failed = avformat_write_header(muxer->context, NULL) < 0;
    }
    if (failed || stream == NULL) {
        av_muxer_destroy(muxer);
        return NULL;
    }
    return muxer;
}

/// Adds one frame; times are milliseconds and must grow. Returns a negative value if libavformat
/// refuses it.
static inline int av_muxer_add(struct av_muxer *muxer, const uint8_t *bytes, int count,
                               int64_t time, int keyframe) {
    if (av_new_packet(muxer->packet, count) < 0) return AVERROR(ENOMEM);
    memcpy(muxer->packet->data, bytes, (size_t)count);
    muxer->packet->stream_index = 0;
    muxer->packet->pts = time;
    muxer->packet->dts = time;
    muxer->packet->flags = keyframe ? AV_PKT_FLAG_KEY : 0;
    int result = av_write_frame(muxer->context, muxer->packet);
    av_packet_unref(muxer->packet);
    return result;
}

/// Ends the current cluster, so that the file can be played up to here.
static inline void av_muxer_flush(struct av_muxer *muxer) {
    av_write_frame(muxer->context, NULL);
    avio_flush(muxer->io);
}

/// Writes the file's trailer and updates its header.
static inline void av_muxer_finish(struct av_muxer *muxer) {
    av_write_trailer(muxer->context);
    avio_flush(muxer->io);
}

/// Reads the run at `cursor` in the log and advances to the next; returns 0 if there is none.
static inline int av_muxer_next(const struct av_muxer *muxer, size_t *cursor, struct av_run *run,
                                const uint8_t **bytes) {
    if (*cursor + sizeof *run > muxer->used) return 0;
    memcpy(run, muxer->log + *cursor, sizeof *run);
    *bytes = muxer->log + *cursor + sizeof *run;
    *cursor += sizeof *run + (size_t)run->count;
    return 1;
}

/// Clears the log.
static inline void av_muxer_clear(struct av_muxer *muxer) {
    muxer->used = 0;
    muxer->last = SIZE_MAX;
}
