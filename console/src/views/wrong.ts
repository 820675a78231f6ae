import { Refused } from "../api";

/** Something that was typed and cannot be sent. */
export const wrong = (message: string, hint: string): Refused => new Refused(message, hint, 400);
