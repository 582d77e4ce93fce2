// Picture in picture: one tile's picture in a small window that stays on top.

export const canFloat = document.pictureInPictureEnabled === true;

/** Floats this picture, or puts it back. */
export async function toggleFloat(video) {
  if (document.pictureInPictureElement === video) await document.exitPictureInPicture();
  else if (video.videoWidth > 0) await video.requestPictureInPicture();
}
