/// Parts of libopus that Swift does not import: the variadic control function and its macros.
#pragma once

#include <opus/opus.h>
#include <stddef.h>

/// Creates a speech encoder configured as in libwebrtc: one channel, in-band FEC. Benchmarks and
/// tests use it.
static inline OpusEncoder *opus_speech_encoder(int bits_per_second) {
    int error = 0;
    OpusEncoder *encoder = opus_encoder_create(48000, 1, OPUS_APPLICATION_VOIP, &error);
    if (encoder == NULL) return NULL;
    opus_encoder_ctl(encoder, OPUS_SET_BITRATE(bits_per_second));
    opus_encoder_ctl(encoder, OPUS_SET_INBAND_FEC(1));
    opus_encoder_ctl(encoder, OPUS_SET_COMPLEXITY(5));
    opus_encoder_ctl(encoder, OPUS_SET_SIGNAL(OPUS_SIGNAL_VOICE));
    return encoder;
}

/// Sets whether the encoder uses DTX in silence, and whether its bitrate is constant.
static inline void opus_speech_encoder_set(OpusEncoder *encoder, int is_silent, int is_constant) {
    opus_encoder_ctl(encoder, OPUS_SET_DTX(is_silent));
    opus_encoder_ctl(encoder, OPUS_SET_VBR(!is_constant));
}

/// Resets a decoder for another stream.
static inline void opus_decoder_reset(OpusDecoder *decoder) {
    opus_decoder_ctl(decoder, OPUS_RESET_STATE);
}
