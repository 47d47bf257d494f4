#!/bin/sh
# Generates the media the fake upstreams serve: a 3 s H.264 baseline clip (yuv420p, index before data), a WebP thumbnail
# and a JPEG sprite sheet of it, and one second of tone per audio format. Needs ffmpeg with libx264, and cwebp.
# Run it in this folder; the results are committed.
set -eu
ffmpeg -y -v error -f lavfi -i testsrc=size=640x360:rate=24:duration=3 \
	-map_metadata -1 -fflags +bitexact -flags:v +bitexact \
	-c:v libx264 -profile:v baseline -level 3.0 -pix_fmt yuv420p -preset veryslow -crf 12 -g 24 -threads 1 \
	-movflags +faststart clip.mp4
ffmpeg -y -v error -ss 1 -i clip.mp4 -frames:v 1 -vf scale=320:-1 thumbnail.png
cwebp -quiet -q 60 thumbnail.png -o thumbnail.webp
rm thumbnail.png
ffmpeg -y -v error -i clip.mp4 -vf "fps=3,scale=160:-1,tile=3x3" -frames:v 1 -q:v 6 spritesheet.jpg
for kind in "mp3 -c:a libmp3lame -b:a 32k" "opus -c:a libopus -b:a 24k" "aac -c:a aac -b:a 32k -f adts" "flac -c:a flac" "wav -c:a pcm_s16le"; do
	# shellcheck disable=SC2086 # the options are meant to be split
	set -- $kind
	name=$1
	shift
	ffmpeg -y -v error -f lavfi -i sine=frequency=440:sample_rate=24000:duration=1 -map_metadata -1 -fflags +bitexact -flags:a +bitexact "$@" "tone.$name"
done
ffprobe -v error -show_entries stream=codec_name,profile,pix_fmt,width,height,nb_frames -show_entries format=duration,size clip.mp4
