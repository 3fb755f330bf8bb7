/** A legend, a unit and, where colours depend on the zoom, where they end. */
export interface LayerInfo {
  name: string;
  unit: string;
  legend: unknown;
  limit_by_zoom: Record<string, number> | null;
}

/** What a file says of itself. What belongs to the map is missing where `not_on_map` says why. */
export interface TerrainInfo {
  bytes: number;
  width: number;
  height: number;
  /** Side of a tile of the file. */
  tile: number;
  /** Columns and rows of every level. */
  levels: [number, number][];
  method: string;
  model: { name: string; sha256: string; embedded: boolean } | null;
  error_bound: string;
  bound_m: number | null;
  lossless: boolean;
  pixels: number;
  bpp: number;
  rmse_m: number;
  max_error_m: number;
  lowest_m: number;
  highest_m: number;
  crs: string;
  horizontal_epsg: number | null;
  vertical_epsg: number | null;
  /** GDAL's order: x, x per column, x per row, y, y per column, y per row. */
  affine: [number, number, number, number, number, number];
  /** West, south, east and north in degrees. */
  bounds?: [number, number, number, number];
  minzoom?: number;
  maxzoom?: number;
  pixel_m?: number;
  layers?: LayerInfo[];
  not_on_map?: string;
  [key: string]: unknown;
}

export interface Point {
  /** Coordinates in the file's own system. */
  x?: number;
  y?: number;
  coordinates: [number, number];
  crs: string;
  /** `null` where there is no data. */
  height_m: number | null;
  gradient_east?: number;
  gradient_north?: number;
  slope_deg?: number;
  aspect_deg?: number | null;
  laplacian_per_m?: number;
  profile_curvature_per_m?: number | null;
  plan_curvature_per_m?: number | null;
  hessian_per_m?: [number, number, number];
}

export interface ProfilePoint {
  distance_m: number;
  longitude_deg: number;
  latitude_deg: number;
  height_m: number | null;
}

export interface Profile {
  length_m: number;
  ascent_m: number;
  descent_m: number;
  points: ProfilePoint[];
}

export type Layer =
  | "height" | "relief" | "hillshade" | "slope" | "aspect" | "laplacian" | "profile-curvature" | "plan-curvature";

export interface Abortable {
  signal?: AbortSignal;
}

export interface TileOptions extends Abortable {
  /** `height` unless told: Terrarium colours. */
  layer?: Layer;
  /** Pixels across; 256 unless told. */
  side?: number;
}

export interface TileJson {
  tilejson: string;
  tiles: string[];
  bounds: [number, number, number, number];
  minzoom: number;
  maxzoom: number;
  [key: string]: unknown;
}

/** An open file. Decoding happens in workers; in Node, and in a page that can start none, where `open` was called. */
export class Terrain {
  private constructor();
  readonly info: TerrainInfo;
  /** The address under which the map protocol knows it: `terrane://` + `url`. */
  readonly url: string;
  readonly name: string;
  /** Requests made and bytes read so far. */
  readonly traffic: { requests: number; bytes: number };
  /** Height in metres of the continuous surface; `null` where there is no data. */
  height(longitude: number, latitude: number, options?: Abortable): Promise<number | null>;
  /** Height, slope, aspect and curvatures, as `terrane query` reports them. */
  point(longitude: number, latitude: number, options?: Abortable): Promise<Point>;
  /** Heights at `count` points, 256 unless told, at equal distances along a line of longitudes and latitudes. */
  profile(line: [number, number][], count?: number, options?: Abortable): Promise<Profile>;
  /** Heights of pixels of a level, row by row; NaN where there is no data. */
  window(
    window: { level?: number; column: number; row: number; width: number; height: number },
    options?: Abortable,
  ): Promise<Float64Array>;
  /** A map tile, the same as that of `terrane serve`. */
  tile(z: number, x: number, y: number, options: TileOptions & { as: "pixels" }): Promise<Uint8ClampedArray>;
  tile(z: number, x: number, y: number, options?: TileOptions & { as?: "bitmap" }): Promise<ImageBitmap>;
  /** Contour lines of a map tile as a Mapbox vector tile: layer `contours`, properties `height` and `index`. */
  contours(z: number, x: number, y: number, options?: Abortable & { interval?: number }): Promise<Uint8Array>;
  /** TileJSON of a layer, or of `contours`. */
  tilejson(layer?: Layer | "contours"): Promise<TileJson>;
  /** Forgets the file and gives up what is being read. */
  close(): void;
}

export interface OpenOptions {
  /** The file's model, where it is neither in the file nor in this package. */
  model?: Input;
}

/**
 * What a file is read from: an address, which is read by range requests; a File or Blob; its bytes, as a Buffer is. In Node a text
 * without a scheme is a path, and `file:` addresses are read.
 */
export type Input = string | URL | Blob | ArrayBuffer | ArrayBufferView;

/** Opens a file. */
export function open(input: Input, options?: OpenOptions): Promise<Terrain>;

/**
 * For MapLibre: `maplibregl.addProtocol("terrane", protocol)`. `terrane://ADDRESS` is the TileJSON of a `raster-dem`
 * source, `terrane://ADDRESS/LAYER` that of a `raster` source and `terrane://ADDRESS/contours` that of a `vector` source.
 */
export function protocol(
  request: { url: string },
  controller?: { signal?: AbortSignal },
): Promise<{ data: ImageBitmap | ArrayBuffer | TileJson }>;

/** The parts of an address of the protocol. */
export function parse(address: string): { file: string; layer: string; tile: [number, number, number] | null; scale: number };
