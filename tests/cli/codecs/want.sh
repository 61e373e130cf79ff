# SPDX-License-Identifier: BSD-3-Clause
# The smallest setting that meets a wish, as lines for the configuration.
# NEEDS: lz4 zstd zfp fpzip
small_trail t 1 1 1 && cairn codecs --no-storage --want rho=0.99999,max=1e-3 t temperature |
    grep -A9 '^\[variable'
