/// Wrappers for VP8 encoding and decoding with libvpx, whose own calls are macros and variadic
/// functions, which Swift does not import.
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <vpx/vp8cx.h>
#include <vpx/vp8dx.h>
#include <vpx/vpx_decoder.h>
#include <vpx/vpx_encoder.h>

struct vp8_settings {
    int width, height;
    int bits_per_second, frames_per_second;
    /// Largest keyframe, in percent of the average frame; 0 for no bound.
    int keyframe_percent;
};

struct vp8_encoder {
    vpx_codec_ctx_t codec;
    vpx_image_t image;
    int64_t frames;
};

/// Creates an encoder configured like libwebrtc's: real-time, constant bitrate, error resilient.
///
/// Fixed speed and a single thread make its output deterministic. Returns NULL on failure.
static inline struct vp8_encoder *vp8_encoder_create(struct vp8_settings settings) {
    struct vp8_encoder *encoder = calloc(1, sizeof *encoder);
    vpx_codec_enc_cfg_t configuration;
    if (encoder == NULL) return NULL;
    if (vpx_codec_enc_config_default(vpx_codec_vp8_cx(), &configuration, 0) != VPX_CODEC_OK) {
        free(encoder);
        return NULL;
    }
    configuration.g_w = (unsigned)settings.width;
    configuration.g_h = (unsigned)settings.height;
    configuration.g_threads = 1;
    configuration.g_timebase.num = 1;
    configuration.g_timebase.den = settings.frames_per_second;
    configuration.g_error_resilient = VPX_ERROR_RESILIENT_DEFAULT;
    configuration.g_lag_in_frames = 0;
    configuration.rc_end_usage = VPX_CBR;
    configuration.rc_target_bitrate = (unsigned)settings.bits_per_second / 1000;
    configuration.rc_min_quantizer = 2;
    configuration.rc_max_quantizer = 56;
    configuration.rc_undershoot_pct = 100;
    configuration.rc_overshoot_pct = 15;
    configuration.rc_buf_initial_sz = 500;
    configuration.rc_buf_optimal_sz = 600;
    configuration.rc_buf_sz = 1000;
    configuration.rc_dropframe_thresh = 0;
    configuration.kf_mode = VPX_KF_DISABLED;
    if (vpx_codec_enc_init(&encoder->codec, vpx_codec_vp8_cx(), &configuration, 0)
        != VPX_CODEC_OK) {
        free(encoder);
        return NULL;
    }
    vpx_codec_control(&encoder->codec, VP8E_SET_CPUUSED, -8);
    vpx_codec_control(&encoder->codec, VP8E_SET_STATIC_THRESHOLD, 1);
    if (settings.keyframe_percent > 0) {
        vpx_codec_control(&encoder->codec, VP8E_SET_MAX_INTRA_BITRATE_PCT,
                          (unsigned)settings.keyframe_percent);
    }
    if (vpx_img_alloc(&encoder->image, VPX_IMG_FMT_I420, (unsigned)settings.width,
                      (unsigned)settings.height, 16)
        == NULL) {
        vpx_codec_destroy(&encoder->codec);
        free(encoder);
        return NULL;
    }
    return encoder;
}

static inline void vp8_encoder_destroy(struct vp8_encoder *encoder) {
    vpx_img_free(&encoder->image);
    vpx_codec_destroy(&encoder->codec);
    free(encoder);
}

/// Returns a plane of the next picture: 0 is luma, 1 and 2 are chroma of half the size.
static inline uint8_t *vp8_encoder_plane(struct vp8_encoder *encoder, int plane, int *stride) {
    *stride = encoder->image.stride[plane];
    return encoder->image.planes[plane];
}

/// Encodes the picture; returns the frame's bytes, valid until the next call, or NULL.
static inline const uint8_t *vp8_encoder_encode(struct vp8_encoder *encoder, bool keyframe,
                                                size_t *length) {
    *length = 0;
    vpx_enc_frame_flags_t flags = keyframe ? VPX_EFLAG_FORCE_KF : 0;
    if (vpx_codec_encode(&encoder->codec, &encoder->image, encoder->frames++, 1, flags,
                         VPX_DL_REALTIME)
        != VPX_CODEC_OK)
        return NULL;
    vpx_codec_iter_t iterator = NULL;
    const vpx_codec_cx_pkt_t *packet;
    while ((packet = vpx_codec_get_cx_data(&encoder->codec, &iterator)) != NULL) {
        if (packet->kind != VPX_CODEC_CX_FRAME_PKT) continue;
        *length = packet->data.frame.sz;
        return (const uint8_t *)packet->data.frame.buf;
    }
    return NULL;
}

static inline vpx_codec_ctx_t *vp8_decoder_create(void) {
    vpx_codec_ctx_t *codec = calloc(1, sizeof *codec);
    vpx_codec_dec_cfg_t configuration = {.threads = 1};
    if (codec == NULL) return NULL;
    if (vpx_codec_dec_init(codec, vpx_codec_vp8_dx(), &configuration, 0) == VPX_CODEC_OK)
        return codec;
    free(codec);
    return NULL;
}

static inline void vp8_decoder_destroy(vpx_codec_ctx_t *codec) {
    vpx_codec_destroy(codec);
    free(codec);
}

/// Decodes one frame; returns whether it gave an undamaged picture without error.
static inline bool vp8_decoder_decode(vpx_codec_ctx_t *codec, const uint8_t *bytes,
                                      unsigned length, int *width, int *height) {
    int corrupted = 0;
    if (vpx_codec_decode(codec, bytes, length, NULL, 0) != VPX_CODEC_OK) return false;
    vpx_codec_iter_t iterator = NULL;
    vpx_image_t *image = vpx_codec_get_frame(codec, &iterator);
    if (image == NULL) return false;
    *width = (int)image->d_w;
    *height = (int)image->d_h;
    return vpx_codec_control(codec, VP8D_GET_FRAME_CORRUPTED, &corrupted) == VPX_CODEC_OK
        && !corrupted;
}
